import { z } from 'zod';
import { loadConfig } from '../../../kit/config/config.ts';
import { defineCommand, ok } from '../../define-command.ts';

interface Validated {
  /** Path of the config file, or null if no file exists and the defaults apply. */
  configFile: string | null;
  profile: string;
  problems: [];
}

/**
 * Checks the configuration in all profiles. Throws one error that lists every problem with its path. @spec
 * docs/operations.md "Configuration"
 */
export const validate = defineCommand({
  name: 'config validate',
  summary: 'Check the configuration in all profiles and list all problems',
  example: 'svc config validate ./svc.config.json',
  args: z.object({
    file: z.string().optional().describe('a file or its folder; default: the current config'),
  }),
  positionals: ['file'],
  async run({ file }, { cwd, env, globals }) {
    const configFile = file ?? globals.config;
    const loaded = loadConfig({ cwd, env, configFile, profile: globals.profile });
    return ok<Validated>({ configFile: loaded.configFile, profile: loaded.profile, problems: [] });
  },
  text: ({ configFile, profile }: Validated, style) =>
    `${style.green('✓')} ${configFile ?? 'no svc.config.json, defaults'}: valid (profile ${profile})`,
});

import { z } from 'zod';
import { loadConfig } from '../../../kit/config.ts';
import { defineCommand, ok } from '../../define-command.ts';

interface Validated {
  /** Null: there is no file, and the defaults serve. */
  configFile: string | null;
  profile: string;
  problems: [];
}

/** Throws every fault at once, with its path; those of other profiles too. @spec docs/operations.md "Configuration" */
export const validate = defineCommand({
  name: 'config validate',
  summary: 'Check the configuration, every profile of it, and list each fault',
  example: 'svc config validate ./svc.config.json',
  args: z.object({ file: z.string().optional().describe('a file or its folder; default: the one in use') }),
  positionals: ['file'],
  async run({ file }, { cwd, env, globals }) {
    const configFile = file ?? globals.config;
    const loaded = loadConfig({ cwd, env, configFile, profile: globals.profile });
    return ok<Validated>({ configFile: loaded.configFile, profile: loaded.profile, problems: [] });
  },
  text: ({ configFile, profile }: Validated, style) =>
    `${style.green('✓')} ${configFile ?? 'the defaults (there is no svc.config.json)'}: no faults (profile ${profile})`,
});

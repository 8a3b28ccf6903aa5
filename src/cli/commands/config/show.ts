import { z } from 'zod';
import type { PlatformConfig } from '../../../contracts/index.ts';
import { configOrigins } from '../../../kit/config/origin.ts';
import { formatPath } from '../../../kit/config/problems.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { table } from '../../table.ts';
import { leavesOf } from './config-path.ts';
import { maskConfig } from './mask-config.ts';

interface Shown {
  configFile: string | null;
  profile: string;
  projectDir: string;
  dataDir: string;
  /** The effective config, with profile and environment applied and with secrets masked. */
  config: PlatformConfig;
  /** Origin of each value by path. Present only with `--origin`. */
  origins?: Record<string, string>;
}

/** @spec docs/operations.md "Configuration" */
export const show = defineCommand({
  name: 'config show',
  summary: 'Show the effective configuration from file, profile and environment',
  example: 'svc config show --origin',
  verbatim: true,
  args: z.object({
    origin: z.boolean().default(false).describe('show the origin of each value'),
  }),
  async run({ origin }, { platform, ui }) {
    const loaded = platform();
    const { configFile, profile, projectDir, dataDir } = loaded;
    ui.note(`${configFile ?? 'no config file, defaults'}, profile ${profile}, data in ${dataDir}`);
    const config = maskConfig(loaded.config);
    const shown: Shown = { configFile, profile, projectDir, dataDir, config };
    if (origin) {
      const originOf = configOrigins(loaded);
      shown.origins = Object.fromEntries(
        leavesOf(config).map(({ path }) => [formatPath(path), originOf(path)]),
      );
    }
    return ok(shown);
  },
  text({ config, origins }: Shown, style) {
    if (!origins) return JSON.stringify(config, null, 2);
    const rows = leavesOf(config).map(({ path, value }) => {
      const name = formatPath(path);
      return [name, origins[name] ?? 'default', JSON.stringify(value)];
    });
    return table(['key', 'origin', 'value'], rows, style);
  },
});

import { z } from 'zod';
import { configOrigins } from '../../../kit/config/origin.ts';
import { formatPath } from '../../../kit/config/problems.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { parsePath, valueAt } from './config-path.ts';
import { maskConfig } from './mask-config.ts';

interface ConfigValue {
  path: string;
  value: unknown;
  origin: string;
}

/** @spec docs/operations.md "Configuration" */
export const get = defineCommand({
  name: 'config get',
  summary: 'Show one value of the effective configuration',
  example: 'svc config get gateway.port',
  verbatim: true,
  args: z.object({ path: z.string().describe('for example gateway.port, or execution.plugins["@acme/x"]') }),
  async run({ path: text }, { platform }) {
    const path = parsePath(text);
    const loaded = platform();
    const value = valueAt(maskConfig(loaded.config), path);
    return ok<ConfigValue>({ path: formatPath(path), value, origin: configOrigins(loaded)(path) });
  },
  text: ({ value }: ConfigValue) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2)),
});

import { z } from 'zod';
import { listPlugins, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { table } from '../../style.ts';

/** @spec REST API: marketplace */
export const list = defineCommand({
  name: 'plugins list',
  summary: 'List plugins, broken and disabled ones too',
  example: 'svc plugins list',
  args: z.object({}),
  run: async (_args, { client }) => ok(await client.call(listPlugins)),
  text({ items }: ReplyOf<typeof listPlugins>, style) {
    if (items.length === 0) return 'There are no plugins. svc plugins create makes one.';
    const colour = { loaded: style.green, broken: style.red, disabled: style.yellow };
    const rows = items.map(({ id, version, origin, status, keptVersion, source }) => [
      id,
      version ?? '-',
      colour[status](keptVersion === null ? status : `${status}, ${keptVersion} runs on`),
      origin,
      source,
    ]);
    const faults = items.flatMap(({ id, faults }) =>
      faults.map(
        ({ code, path, message }) => `${id}: ${path ? `${path}: ` : ''}${message} ${style.dim(code)}`,
      ),
    );
    return [table(['plugin', 'version', 'status', 'origin', 'source'], rows, style), ...faults].join('\n');
  },
});

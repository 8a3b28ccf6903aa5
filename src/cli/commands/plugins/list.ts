import { z } from 'zod';
import { listPlugins, type PluginRecord } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';
import { sourceLabel } from './source-label.ts';

/** @spec REST API: marketplace */
export const list = defineCommand({
  name: 'plugins list',
  summary: 'List plugins, including broken and disabled ones',
  example: 'svc plugins list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const reply = await client.call(listPlugins);
    return ok({ ...reply, ...pageOf(reply.items, flags, ({ id }) => id) });
  },
  text({ items, nextCursor }: ListPage<PluginRecord>, style) {
    if (items.length === 0) return 'There are no plugins. Create one with svc plugins create.';
    const colour = { loaded: style.green, broken: style.red, disabled: style.yellow };
    const rows = items.map(({ id, version, origin, status, keptVersion, source }) => [
      id,
      version ?? '-',
      colour[status](keptVersion === null ? status : `${status}, running ${keptVersion}`),
      origin,
      sourceLabel(source),
    ]);
    const faults = items.flatMap(({ id, faults }) =>
      faults.map(
        ({ code, path, message }) => `${id}: ${path ? `${path}: ` : ''}${message} ${style.dim(code)}`,
      ),
    );
    return (
      [table(['plugin', 'version', 'status', 'origin', 'source'], rows, style), ...faults].join('\n') +
      moreLine(nextCursor, style)
    );
  },
});

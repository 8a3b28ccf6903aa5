import { z } from 'zod';
import { listWorkflows, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';

export const list = defineCommand({
  name: 'workflows list',
  summary: 'List registered workflows, and the problems of invalid ones',
  example: 'svc workflows list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const reply = await client.call(listWorkflows);
    return ok({ ...reply, ...pageOf(reply.items, flags, ({ id }) => id) });
  },
  text({ items, faults, nextCursor, pausedUnregistered = [] }: ReplyOf<typeof listWorkflows>, style) {
    const rows = items.map(({ id, version, source, jobs, name, paused }) => [
      paused ? `${id} ${style.yellow('(paused)')}` : id,
      version,
      source,
      jobs.join(', '),
      name ?? '',
    ]);
    const parts = [
      rows.length === 0
        ? 'There are no workflows. Add a definition to ./workflows.'
        : table(['workflow', 'version', 'source', 'jobs', 'name'], rows, style),
    ];
    for (const { source, path, message, text, unresolved } of faults) {
      const state = unresolved ? style.yellow('cannot run') : style.red('refused');
      parts.push(`${state} ${source}${path === '' ? '' : ` ${path}`}: ${message}`);
      if (text) parts.push(style.dim(`    | ${text}`));
    }
    if (pausedUnregistered.length > 0)
      parts.push(`${style.yellow('paused')}, but not registered: ${pausedUnregistered.join(', ')}`);
    return parts.join('\n') + moreLine(nextCursor, style);
  },
});

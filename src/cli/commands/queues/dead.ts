import { z } from 'zod';
import { listQueueItems, type QueueItem } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { queueArg } from './queue-args.ts';

/** @spec docs/queues.md */
export const dead = defineCommand({
  name: 'queues dead',
  summary: 'List the dead items of a queue, oldest first',
  example: 'svc queues dead orders',
  idField: 'id',
  args: z.object({
    ...queueArg,
    limit: z.coerce.number().int().min(1).max(1000).default(100).describe('maximum number of items'),
    cursor: z.string().min(1).optional().describe('nextCursor of the previous page'),
  }),
  positionals: ['queue'],
  short: { limit: 'n' },
  run: async ({ queue, ...page }, { client }) =>
    ok(await client.call(listQueueItems, { params: { name: queue }, query: { status: 'dead', ...page } })),
  text({ items, nextCursor }: ListPage<QueueItem>, style) {
    const rows = items.map(({ id, endedAt, attempt, lastError }) => [
      id,
      timeText(endedAt!),
      String(attempt),
      lastError ?? '-',
    ]);
    return table(['item', 'died', 'attempts', 'last error'], rows, style) + moreLine(nextCursor, style);
  },
});

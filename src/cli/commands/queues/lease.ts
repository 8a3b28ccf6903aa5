import { z } from 'zod';
import { leaseItems, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { queueArg } from './queue-args.ts';

/** Shorter than the time limit of the command's calls. */
const MAX_WAIT_MS = 20_000;

/** @spec docs/queues.md */
export const lease = defineCommand({
  name: 'queues lease',
  summary: 'Lease items of a queue, for scripts and to look at them',
  example: 'svc queues lease orders --max 5 --json',
  idField: 'leaseId',
  args: z.object({
    ...queueArg,
    max: z.coerce.number().int().min(1).max(1000).default(1).describe('number of items'),
    leaseMs: z.coerce.number().int().min(1).optional().describe('duration; default: of the queue'),
    waitMs: z.coerce.number().int().min(0).max(MAX_WAIT_MS).default(0).describe('time to wait for items'),
  }),
  positionals: ['queue'],
  run: async ({ queue, ...body }, { client }) =>
    ok(await client.call(leaseItems, { params: { name: queue }, body })),
  text({ items }: ReplyOf<typeof leaseItems>, style) {
    if (items.length === 0) return 'No item can be leased now.';
    return items
      .map(({ leaseId, id, attempt, body, bodyBase64 }) => {
        const content = body === null ? (bodyBase64 ?? 'null') : JSON.stringify(body, null, 2);
        return `${style.bold(leaseId)}  item ${id}, attempt ${attempt}\n${content}`;
      })
      .join('\n\n');
  },
});

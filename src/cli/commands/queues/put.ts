import { z } from 'zod';
import { putItem, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { queueArg } from './queue-args.ts';

/** @spec docs/queues.md */
export const put = defineCommand({
  name: 'queues put',
  summary: 'Add an item to a queue',
  example: `svc queues put orders '{"n": 1}'`,
  idField: 'id',
  args: z.object({
    ...queueArg,
    data: z.string().describe('body as JSON; "@<file>" reads a file, "-" reads stdin'),
    id: z.string().min(1).max(256).optional().describe('id; a second item with it is ignored'),
    orderKey: z.string().max(256).optional().describe('items with the same key are leased in order'),
    delayMs: z.coerce.number().int().min(0).default(0).describe('time until it can be leased'),
  }),
  async run({ queue, data, ...fields }, { client, cwd }) {
    const body = { ...fields, body: await readJson('<data>', data, cwd) };
    return ok(await client.call(putItem, { params: { name: queue }, body }));
  },
  text: ({ id, added }: ReplyOf<typeof putItem>) => (added ? `Added ${id}.` : `${id} exists already.`),
});

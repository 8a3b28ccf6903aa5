import { z } from 'zod';
import { countDeliveries, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { countFlags, countQuery, countsTable } from '../../hour-counts.ts';

/** @spec docs/webhooks.md "Records" */
export const counts = defineCommand({
  name: 'webhooks counts',
  summary: 'Count deliveries per hour, by how they ended',
  example: 'svc webhooks counts --since 2d',
  args: z.object(countFlags),
  async run(flags, { client, clock }) {
    return ok(await client.call(countDeliveries, { query: countQuery(flags, clock.now()) }));
  },
  text: (reply: ReplyOf<typeof countDeliveries>, style) =>
    countsTable(reply, ['total', 'open', 'succeeded', 'failed', 'unhandled'], style),
});

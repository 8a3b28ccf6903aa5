import { z } from 'zod';
import { nackItems } from '../../../contracts/index.ts';
import { defineCommand } from '../../define-command.ts';
import { leaseArgs, leaseResult, leaseText } from './queue-args.ts';

/** @spec docs/queues.md */
export const nack = defineCommand({
  name: 'queues nack',
  summary: 'Return leased items to their queue',
  example: 'svc queues nack orders 2f.d8Jx0aPqT1uEwZrY --delay-ms 60000',
  idField: 'leaseId',
  args: z.object({
    ...leaseArgs,
    delayMs: z.coerce.number().int().min(0).optional().describe('default: grows with the attempts'),
    error: z.string().max(4096).optional().describe('why, shown with the item'),
  }),
  positionals: ['queue', 'leases'],
  run: async ({ queue, leases, ...more }, { client }) =>
    leaseResult(
      await client.call(nackItems, { params: { name: queue }, body: { leaseIds: leases, ...more } }),
    ),
  text: leaseText,
});

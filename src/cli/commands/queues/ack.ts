import { z } from 'zod';
import { ackItems } from '../../../contracts/index.ts';
import { defineCommand } from '../../define-command.ts';
import { leaseArgs, leaseResult, leaseText } from './queue-args.ts';

/** @spec docs/queues.md */
export const ack = defineCommand({
  name: 'queues ack',
  summary: 'End leases of items that were handled',
  example: 'svc queues ack orders 2f.d8Jx0aPqT1uEwZrY',
  idField: 'leaseId',
  args: z.object(leaseArgs),
  positionals: ['queue', 'leases'],
  run: async ({ queue, leases }, { client }) =>
    leaseResult(await client.call(ackItems, { params: { name: queue }, body: { leaseIds: leases } })),
  text: leaseText,
});

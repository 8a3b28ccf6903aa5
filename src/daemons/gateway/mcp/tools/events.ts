import { z } from 'zod';
import {
  ackItems,
  leaseItems,
  MAX_LEASE_WAIT_MS,
  nackItems,
  QueueName,
} from '../../../../contracts/index.ts';
import { platformTool } from '../platform-tool.ts';
import type { Tool } from '../tool.ts';

const MAX_EVENTS = 20;

const queue = QueueName.describe('Name of the queue');
const leaseIds = z.array(z.string().min(1).max(256)).min(1).max(100).describe('`leaseId` of each event');

export const eventTools: readonly Tool[] = [
  platformTool({
    name: 'events_wait',
    title: 'Wait for events',
    description:
      'Leases the oldest events of a queue, and waits for them if there are none. Acknowledge each event with events_ack once it is handled. Events that are not acknowledged before leasedUntil are delivered again, also after a restart of the client.',
    needs: 'editor',
    input: z.strictObject({
      queue,
      max: z.number().int().min(1).max(MAX_EVENTS).default(1),
      waitMs: z.number().int().min(0).max(MAX_LEASE_WAIT_MS).default(20_000),
      leaseMs: z.number().int().min(1).optional().describe('Default and maximum: the settings of the queue'),
    }),
    run: ({ queue: name, ...body }, { call }) => call(leaseItems, { params: { name }, body }),
  }),
  platformTool({
    name: 'events_ack',
    title: 'Acknowledge events',
    description: 'Marks leased events as handled, so that they are not delivered again.',
    needs: 'editor',
    hasOutsideData: false,
    input: z.strictObject({ queue, leaseIds }),
    run: ({ queue: name, ...body }, { call }) => call(ackItems, { params: { name }, body }),
  }),
  platformTool({
    name: 'events_nack',
    title: 'Return events',
    description: 'Returns leased events to the queue, which delivers them again later.',
    needs: 'editor',
    hasOutsideData: false,
    input: z.strictObject({
      queue,
      leaseIds,
      delayMs: z.number().int().min(0).optional().describe('Default: the backoff of the queue'),
      error: z.string().max(1000).optional().describe('Why the events could not be handled'),
    }),
    run: ({ queue: name, ...body }, { call }) => call(nackItems, { params: { name }, body }),
  }),
];

import { z } from 'zod';
import { QueueSettings } from './queue-settings.ts';

export const QueueItemStatus = z.enum(['waiting', 'leased', 'dead', 'acked']);
export type QueueItemStatus = z.infer<typeof QueueItemStatus>;

const time = z.number().nullable();

/** The content of an item: together, the fields hold every byte. */
export const queueItemContent = {
  headers: z
    .record(z.string(), z.string())
    .describe('Names in lower case; the values of a repeated header are joined by ", "'),
  body: z.unknown().describe('The JSON value; null if the body is not JSON'),
  bodyBase64: z
    .string()
    .optional()
    .describe('The exact bytes. Absent if the body is compact JSON, unless the call has `raw: true`'),
};

export const QueueItem = z
  .object({
    id: z.string(),
    deliveryId: z.string().nullable().describe('Delivery that the item comes from'),
    orderKey: z.string().nullable(),
    status: QueueItemStatus,
    attempt: z.number().describe('Number of leases since the item was added or retried'),
    receivedAt: z.number(),
    availableAt: time.describe('Time from which a delayed item can be leased'),
    leasedUntil: time,
    endedAt: time.describe('Time of the acknowledgement or of the last failure'),
    lastError: z.string().nullable(),
    bodyBytes: z.number(),
  })
  .meta({ id: 'QueueItem' });
export type QueueItem = z.infer<typeof QueueItem>;

export const QueueItemDetails = QueueItem.extend({
  content: z.object(queueItemContent).nullable().describe('Null for acked items, whose content is deleted'),
}).meta({ id: 'QueueItemDetails' });
export type QueueItemDetails = z.infer<typeof QueueItemDetails>;

export const Queue = z
  .object({
    name: z.string(),
    waiting: z.number().int(),
    leased: z.number().int(),
    dead: z.number().int(),
    oldestAgeMs: z
      .number()
      .nullable()
      .describe('Age of the oldest waiting item; of the delayed items, only the first one due counts'),
    settings: QueueSettings,
    settingsFrom: z.enum(['config', 'api', 'default']).describe('Where the settings come from'),
  })
  .meta({ id: 'Queue' });
export type Queue = z.infer<typeof Queue>;

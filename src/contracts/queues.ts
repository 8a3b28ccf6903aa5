import { z } from 'zod';
import { bulkFields, matching, NextBulkCursor } from './bulk.ts';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { Queue, QueueItem, QueueItemDetails, QueueItemStatus, queueItemContent } from './queue-records.ts';
import { QueueName, QueueSettingsInput } from './queue-settings.ts';
import { RunError } from './workflow-records.ts';

const tags = ['queues'];
const params = z.object({ name: QueueName });
/** PostgreSQL cannot store NUL, and one such text would make a batch of other calls fail. */
const textOf = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[^\0]*$/, 'must not contain NUL characters');
const ItemId = textOf(256).min(1);
const itemParams = params.extend({ id: ItemId });
const Base64 = z.base64().max(64 * 1024 * 1024);
const errors = ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN'] as const;

/** Longest time for which a lease call waits for items. */
export const MAX_LEASE_WAIT_MS = 30_000;
const MAX_LEASED = 1000;

const time = z.number().nullable();

export const listQueues = endpoint({
  method: 'GET',
  path: '/api/v1/queues',
  summary: 'List the queues of the namespace with their counts',
  tags,
  query: NoFilters,
  reply: page(Queue),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

export const getQueue = endpoint({
  method: 'GET',
  path: '/api/v1/queues/:name',
  summary: 'Show the counts and the settings of a queue',
  tags,
  params,
  reply: Queue,
  errors: [...errors, 'NOT_FOUND'],
});

export const configureQueue = endpoint({
  method: 'PUT',
  path: '/api/v1/queues/:name/settings',
  summary: 'Set the settings of a queue; the others get their defaults again',
  tags,
  params,
  body: QueueSettingsInput,
  reply: Queue,
  errors: [...errors, 'CONFLICT'],
});

export const leaseItems = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/lease',
  summary: 'Lease the oldest items; waits for them if there are none',
  tags,
  params,
  body: z
    .strictObject({
      max: z.number().int().min(1).max(MAX_LEASED).default(1),
      leaseMs: z.number().int().min(1).optional().describe('Default and maximum: the settings of the queue'),
      waitMs: z.number().int().min(0).max(MAX_LEASE_WAIT_MS).default(0),
      raw: z.boolean().default(false).describe('Adds `bodyBase64` to each item'),
    })
    .prefault({}),
  reply: z.object({
    items: z.array(
      z.object({
        leaseId: z.string(),
        id: z.string(),
        deliveryId: z.string().nullable(),
        orderKey: z.string().nullable(),
        attempt: z.number().int(),
        receivedAt: z.number(),
        leasedUntil: z.number(),
        ...queueItemContent,
      }),
    ),
  }),
  errors: [...errors, 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

const leaseIds = z.array(z.string().min(1).max(256)).min(1).max(MAX_LEASED);
const lost = z
  .object({ code: z.literal('LEASE_LOST'), message: z.string() })
  .nullable()
  .describe('The lease ended, and the item was given out again, retried or deleted');

export const ackItems = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/ack',
  summary: 'End leases of items that were handled; can be repeated',
  tags,
  params,
  body: z.strictObject({ leaseIds }),
  reply: z.object({
    items: z.array(z.object({ leaseId: z.string(), status: z.literal('acked').nullable(), error: lost })),
  }),
  errors,
});

export const nackItems = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/nack',
  summary: 'End leases of items that could not be handled: they wait again, or become dead',
  tags,
  params,
  body: z.strictObject({
    leaseIds,
    delayMs: z
      .number()
      .int()
      .min(0)
      .max(7 * 24 * 3600_000)
      .optional()
      .describe('Default: 1 s, doubled with each attempt up to 5 minutes'),
    error: textOf(4096).optional(),
  }),
  reply: z.object({
    items: z.array(
      z.object({
        leaseId: z.string(),
        status: z.enum(['waiting', 'dead']).nullable(),
        availableAt: time,
        error: lost,
      }),
    ),
  }),
  errors,
});

export const extendLeases = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/extend',
  summary: 'Make leases end later, counted from now',
  tags,
  params,
  body: z.strictObject({ leaseIds, leaseMs: z.number().int().min(1).optional() }),
  reply: z.object({
    items: z.array(
      z.object({
        leaseId: z.string(),
        status: z.literal('leased').nullable(),
        leasedUntil: time,
        error: lost,
      }),
    ),
  }),
  errors,
});

export const putItem = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/items',
  summary: 'Add an item',
  tags,
  params,
  body: z
    .strictObject({
      id: ItemId.optional().describe('A second item with the same id is ignored for 7 days'),
      body: z.unknown().optional().describe('A JSON value'),
      bodyBase64: Base64.optional(),
      headers: z.record(z.string().max(256), z.string().max(16_384)).default({}),
      orderKey: textOf(256).optional(),
      delayMs: z
        .number()
        .int()
        .min(0)
        .max(30 * 24 * 3600_000)
        .default(0),
    })
    .refine(({ body, bodyBase64 }) => (body === undefined) !== (bodyBase64 === undefined), {
      message: 'set either "body" or "bodyBase64"',
    }),
  reply: z.object({ id: z.string(), added: z.boolean().describe('False if the item already existed') }),
  errors: [...errors, 'SERVICE_UNAVAILABLE'],
});

export const listQueueItems = endpoint({
  method: 'GET',
  path: '/api/v1/queues/:name/items',
  summary: 'List items, in the order in which they are due',
  tags,
  params,
  query: z.strictObject({
    status: QueueItemStatus.optional(),
    limit: z.coerce.number().int().min(1).max(1000).default(100),
    cursor: z.string().max(256).optional(),
  }),
  reply: page(QueueItem),
  errors,
});

export const getQueueItem = endpoint({
  method: 'GET',
  path: '/api/v1/queues/:name/items/:id',
  summary: 'Show an item with its content',
  tags,
  params: itemParams,
  reply: QueueItemDetails,
  errors: [...errors, 'NOT_FOUND'],
});

export const retryItem = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/items/:id/retry',
  summary: 'Let a dead item wait again',
  tags,
  params: itemParams,
  reply: QueueItem,
  errors: [...errors, 'NOT_FOUND', 'CONFLICT'],
});

export const retryDeadItems = endpoint({
  method: 'POST',
  path: '/api/v1/queues/:name/retry-dead',
  summary: 'Let the dead items of a queue wait again',
  tags,
  params,
  body: z
    .strictObject({ limit: z.number().int().min(1).max(1000).default(1000), ...bulkFields })
    .prefault({}),
  reply: z.object({
    items: z.array(z.object({ id: z.string() })).describe('The retried items'),
    refused: z.array(z.object({ id: z.string(), error: RunError })).describe('Always empty'),
    skipped: z.number().describe('Always 0'),
    matching: matching(QueueItem),
    nextCursor: NextBulkCursor,
  }),
  errors,
});

export const deleteItem = endpoint({
  method: 'DELETE',
  path: '/api/v1/queues/:name/items/:id',
  summary: 'Delete an item that is not leased',
  tags,
  params: itemParams,
  reply: z.object({ deleted: z.literal(true) }),
  errors: [...errors, 'NOT_FOUND', 'CONFLICT'],
});

export const purgeQueue = endpoint({
  method: 'DELETE',
  path: '/api/v1/queues/:name/items',
  summary: 'Delete the waiting or the dead items of a queue, in batches',
  tags,
  params,
  query: z.strictObject({ status: z.enum(['waiting', 'dead']) }),
  reply: z.object({
    deleted: z.number(),
    more: z.boolean().describe('Whether items may be left; call again'),
  }),
  errors,
});

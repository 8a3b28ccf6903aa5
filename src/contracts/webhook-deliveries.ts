import { z } from 'zod';
import { bulkFields, matching, NextBulkCursor } from './bulk.ts';
import { Moment, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { countsQuery, DeliveryCounts, QueryTime } from './hour-counts.ts';
import { EventName, InstanceId, PluginId } from './ids.ts';
import { WebhookProtection } from './webhook-admin.ts';
import { RunError } from './workflow-records.ts';

/**
 * Status of a delivery. `refused`, `challenge` and `duplicate` deliveries never reach a handler. `dead` means that no
 * attempts are left. `interrupted` means that the gateway died while the handler was running.
 */
export const DeliveryStatus = z.enum([
  'refused',
  'challenge',
  'duplicate',
  'accepted',
  'running',
  'retrying',
  'succeeded',
  'failed',
  'dead',
  'interrupted',
]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

export const WebhookDelivery = z
  .object({
    webhookId: z.string(),
    pluginId: z.string(),
    event: z.string(),
    instanceId: z.string().nullable(),
    namespaceId: z.string(),
    status: DeliveryStatus,
    httpStatus: z.number().nullable().describe('Status sent to the sender; null until then'),
    mode: z.enum(['sync', 'async']),
    origin: z.enum(['sender', 'sample', 'replay']),
    source: z.string(),
    receivedAt: z.number(),
    durationMs: z.number().nullable(),
    attempts: z.number(),
    nextAttemptAt: z.number().nullable(),
    bodyBytes: z.number(),
    requestId: z.string(),
    traceId: z.string(),
    replayOf: z.string().nullable(),
    replayedBy: z.string().nullable(),
    reason: z.string().nullable().describe('Short reason for a refusal or failure'),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

const DeliveryStep = z.object({
  step: z.string(),
  outcome: z.string(),
  durationMs: z.number(),
});

export const WebhookDeliveryDetails = WebhookDelivery.extend({
  steps: z.array(DeliveryStep),
  attemptHistory: z
    .array(
      z.object({
        startedAt: z.string().describe('ISO 8601'),
        outcome: z.string(),
        durationMs: z.number(),
        error: z.string().nullable(),
      }),
    )
    .describe('Each attempt of an async delivery, oldest first'),
  headers: z
    .array(z.tuple([z.string(), z.string()]))
    .describe('As received; possibly secret values are masked'),
  body: z.string().nullable().describe('Null if it was not stored or was pruned'),
  bodyEncoding: z.enum(['utf8', 'base64']),
  outcome: z.unknown().describe('Result or failure of the handler; null until it ends'),
  explanation: z
    .object({ reason: z.string(), hint: z.string(), skewSeconds: z.number().optional() })
    .nullable()
    .describe('For a 401: what is wrong with the signature. Never sent to the sender'),
  replayableUntil: z
    .number()
    .nullable()
    .describe('For a 401: until when its stored request can be replayed; null if it is not stored'),
  protects: WebhookProtection.optional().describe(
    'What the scheme of the webhook protects. Absent for sources, and if a plugin checks the sender',
  ),
}).meta({ id: 'WebhookDeliveryDetails' });
export type WebhookDeliveryDetails = z.infer<typeof WebhookDeliveryDetails>;

const deliveryFilter = {
  status: DeliveryStatus.optional(),
  pluginId: PluginId.optional(),
  event: EventName.optional(),
  since: QueryTime.optional(),
};

/**
 * Minimum length of a search text. The index consists of trigrams, so a shorter text would require a scan of all rows.
 */
const MIN_SEARCH_BYTES = 3;

/** Lists deliveries, most recently received first. Every page except the last page is full. */
export const listDeliveries = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries',
  summary: 'List deliveries of the namespace, including refused ones, newest first',
  tags: ['webhooks'],
  query: z.strictObject({
    ...deliveryFilter,
    status: z
      .union([DeliveryStatus, z.array(DeliveryStatus).min(1)])
      .optional()
      .describe('Repeat it for deliveries of several statuses'),
    until: QueryTime.optional().describe('Only deliveries received before this time'),
    search: z
      .string()
      .max(200)
      .refine(
        (text) => new TextEncoder().encode(text).length >= MIN_SEARCH_BYTES,
        'must have at least 3 characters, because shorter texts are not indexed (non-ASCII characters count at least double)',
      )
      .optional()
      .describe('Text in the body, a header, the outcome, the source or an id; at least 3 bytes of UTF-8'),
    cursor: z.string().optional(),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  reply: page(WebhookDelivery),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});

export const countDeliveries = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries/counts',
  summary: 'Count deliveries per hour, by the time of their receipt',
  tags: ['webhooks'],
  query: countsQuery,
  reply: DeliveryCounts,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});

const deliveryParams = z.object({ webhookId: z.uuid() });

export const getDelivery = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries/:webhookId',
  summary: 'Show a delivery with its steps, headers, body and outcome',
  tags: ['webhooks'],
  params: deliveryParams,
  reply: WebhookDeliveryDetails,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'DELIVERY_NOT_FOUND'],
});

const Replayed = z.object({ webhookId: z.string(), replayOf: z.string() });

/**
 * Creates a new delivery that runs the handler again with the stored request. A delivery that was refused with 401 is
 * verified again first.
 */
export const replayDelivery = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/deliveries/:webhookId/replay',
  summary: 'Run the handler again; a refused delivery only if its signature is valid now',
  tags: ['webhooks'],
  status: 202,
  params: deliveryParams,
  reply: Replayed,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'DELIVERY_NOT_FOUND', 'CONFLICT', 'WEBHOOK_NOT_FOUND'],
});

/** Runs the handler with a delivery that was refused with 401, even if its signature is not valid now either. */
export const trustDelivery = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/deliveries/:webhookId/trust',
  summary: 'Run the handler with a refused delivery although its signature is not valid',
  tags: ['webhooks'],
  status: 202,
  params: deliveryParams,
  reply: Replayed,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'DELIVERY_NOT_FOUND', 'CONFLICT', 'WEBHOOK_NOT_FOUND'],
});

const Replayable = z.enum(['succeeded', 'failed', 'dead', 'interrupted']);
/** Filters of the list, so that a list and its bulk replay find the same deliveries. */
const replayFilter = listDeliveries.query!.omit({ status: true, since: true, cursor: true, limit: true });

function hasFilter(body: Record<string, unknown>): boolean {
  return ['status', 'since', ...Object.keys(replayFilter.shape)].some((name) => body[name] !== undefined);
}

/**
 * Replays matching deliveries, oldest first, or newest first for a text. Skips deliveries that were already replayed, and
 * deliveries that the sender has redelivered successfully.
 */
export const replayDeliveries = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/deliveries/replay',
  summary: 'Replay many deliveries',
  tags: ['webhooks'],
  status: 202,
  body: z
    .strictObject({
      ...replayFilter.shape,
      status: z
        .union([Replayable, z.array(Replayable).min(1)])
        .optional()
        .describe('Default of a filter: failed'),
      since: Moment.optional(),
      webhookIds: z.array(z.uuid()).min(1).max(1000).optional().describe('Instead of a filter'),
      limit: z.number().int().min(1).max(1000).default(1000),
      ...bulkFields,
    })
    .refine(({ webhookIds, ...body }) => webhookIds === undefined || !hasFilter(body), {
      message: 'set either "webhookIds" or a filter',
    }),
  reply: z.object({
    items: z.array(Replayed),
    refused: z.array(z.object({ webhookId: z.string(), error: RunError })),
    skipped: z.number().describe('Already replayed, handled since, or without a body'),
    more: z.boolean().describe('Whether the limit was reached; call again'),
    matching: matching(WebhookDelivery),
    paused: RunError.nullable().describe('Why a call with a cursor stopped. Wait, then call again'),
    nextCursor: NextBulkCursor,
  }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED'],
});

/** Delivers a sample that is signed with the current secret. The sample passes the same checks as a real delivery. */
export const sendSample = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/send',
  summary: 'Deliver a sample signed with the current secret',
  tags: ['webhooks'],
  body: z.strictObject({
    pluginId: PluginId,
    event: EventName,
    instanceId: InstanceId.optional(),
    data: z.unknown().optional().describe("The payload; default: the declaration's sample"),
    bytes: z.base64().optional().describe('The body in base64, instead of `data`'),
    contentType: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('Content type of the body; default: the first type that the webhook accepts'),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .describe('Additional headers, such as x-github-event'),
  }),
  reply: z.object({ webhookId: z.string(), status: z.number(), body: z.unknown() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'PLUGIN_NOT_FOUND', 'WEBHOOK_NOT_FOUND', 'CONFLICT'],
});

/**
 * Streams deliveries as server-sent events. `delivery` is a new record, `ended` is an outcome, and `passed` is a record
 * that the query excludes. `Last-Event-ID` or `?cursor=` resumes the stream.
 */
export const streamDeliveries = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries/stream',
  summary: 'Stream deliveries as server-sent events',
  tags: ['webhooks'],
  hidden: true,
  query: z.strictObject({
    pluginId: PluginId.optional(),
    event: EventName.optional(),
    cursor: z
      .string()
      .optional()
      .describe('Event id to resume after; "0" for all stored deliveries; default: new ones only'),
    sign: z
      .literal('1')
      .optional()
      .describe('Adds `signature` to each delivery: freshly signed headers, or null if it cannot be signed'),
  }),
  reply: z.unknown(),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

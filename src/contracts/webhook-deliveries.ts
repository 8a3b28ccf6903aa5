import { z } from 'zod';
import { IsoTime, Moment, notBlank, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { EventName, InstanceId, PluginId } from './ids.ts';

/**
 * Where a delivery stands. `refused`, `challenge` and `duplicate` never reached a handler; `accepted` waits for it,
 * `retrying` waits to run again; `dead` has used up its attempts; `interrupted` was running when its gateway died.
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
    httpStatus: z.number().nullable().describe('What the sender was answered; null while it waits'),
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
    reason: z.string().nullable().describe('Why it was refused or failed, in short'),
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
    .describe('As received; values that may be secret are masked'),
  body: z.string().nullable().describe('Null when it was not kept (refused) or pruned'),
  bodyEncoding: z.enum(['utf8', 'base64']),
  outcome: z.unknown().describe("The handler's result or failure; null until it ended"),
  explanation: z
    .object({ reason: z.string(), hint: z.string(), skewSeconds: z.number().optional() })
    .nullable()
    .describe('For a 401: what is wrong with how the sender signs. Never told to the sender'),
}).meta({ id: 'WebhookDeliveryDetails' });
export type WebhookDeliveryDetails = z.infer<typeof WebhookDeliveryDetails>;

/** A moment in a query. */
const Since = notBlank(z.union([z.coerce.number().int().nonnegative(), IsoTime])).describe(
  'Epoch milliseconds, or an ISO 8601 date and time with Z or an offset',
);

const deliveryFilter = {
  status: DeliveryStatus.optional(),
  pluginId: PluginId.optional(),
  event: EventName.optional(),
  since: Since.optional(),
};

/** The index knows sequences of three bytes; a shorter text would be looked for in every row. */
const MIN_SEARCH_BYTES = 3;

/** Newest first, by the time of receipt. Every page but the last is full. */
export const listDeliveries = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries',
  summary: 'Deliveries of the namespace, refused ones too, newest first',
  tags: ['webhooks'],
  query: z.strictObject({
    ...deliveryFilter,
    search: z
      .string()
      .max(200)
      .refine(
        (text) => new TextEncoder().encode(text).length >= MIN_SEARCH_BYTES,
        'must have at least 3 characters: shorter texts are in no index (letters beyond ASCII count double or more)',
      )
      .optional()
      .describe('Text in the body, the outcome, the source or an id; at least 3 bytes of UTF-8'),
    cursor: z.string().optional(),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  reply: page(WebhookDelivery),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});

const deliveryParams = z.object({ webhookId: z.uuid() });

export const getDelivery = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries/:webhookId',
  summary: 'A delivery with every step, its headers, body and outcome',
  tags: ['webhooks'],
  params: deliveryParams,
  reply: WebhookDeliveryDetails,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'DELIVERY_NOT_FOUND'],
});

const Replayed = z.object({ webhookId: z.string(), replayOf: z.string() });

/** Runs the handler once more with what was received, as a delivery of its own. */
export const replayDelivery = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/deliveries/:webhookId/replay',
  summary: 'Run the handler again with a delivery that was authentic',
  tags: ['webhooks'],
  status: 202,
  params: deliveryParams,
  reply: Replayed,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'DELIVERY_NOT_FOUND', 'CONFLICT', 'WEBHOOK_NOT_FOUND'],
});

/** Leaves out what was replayed already, and what the sender's own redelivery has brought through since. */
export const replayDeliveries = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/deliveries/replay',
  summary: 'Run the handlers again for many failed deliveries, oldest first',
  tags: ['webhooks'],
  status: 202,
  body: z.strictObject({
    ...deliveryFilter,
    status: z.enum(['failed', 'dead', 'interrupted']).default('failed'),
    since: Moment,
    limit: z.number().int().min(1).max(1000).default(1000),
  }),
  reply: z.object({
    items: z.array(Replayed),
    skipped: z.number().describe('Replayed before, handled since, or without a body'),
    more: z.boolean().describe('The limit was reached: call again'),
  }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED'],
});

/** The gateway signs as the sender would, and delivers to itself through every step. */
export const sendSample = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/send',
  summary: 'Deliver a sample, signed by the gateway with the current secret',
  tags: ['webhooks'],
  body: z.strictObject({
    pluginId: PluginId,
    event: EventName,
    instanceId: InstanceId.optional(),
    data: z.unknown().optional().describe("The payload; default: the declaration's sample"),
    headers: z.record(z.string(), z.string()).optional().describe('Further headers, such as x-github-event'),
  }),
  reply: z.object({ webhookId: z.string(), status: z.number(), body: z.unknown() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'PLUGIN_NOT_FOUND', 'WEBHOOK_NOT_FOUND', 'CONFLICT'],
});

/**
 * Server-sent events: `delivery` (the record with its body, as it was written), `ended` (one that was open then, with its
 * end), `passed` (one that the query leaves out), each with an id to resume from (`Last-Event-ID` or `?cursor=`), `ping` while nothing happens.
 */
export const streamDeliveries = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/deliveries/stream',
  summary: 'Deliveries as they come, as server-sent events',
  tags: ['webhooks'],
  hidden: true,
  query: z.strictObject({
    pluginId: PluginId.optional(),
    event: EventName.optional(),
    cursor: z.string().optional().describe('Where to go on; "0" for all that is kept; default: from now on'),
    sign: z
      .literal('1')
      .optional()
      .describe('Each delivery brings `signature`: headers that prove it anew, null where there can be none'),
  }),
  reply: z.unknown(),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

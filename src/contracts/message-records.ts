import { z } from 'zod';
import { MAX_RECENT_ATTEMPTS } from './endpoint-health.ts';

/**
 * Event type of a message, such as `order.created`. Standard Webhooks: words of letters, digits and underscores, with full
 * stops between them. Dashes are allowed, too.
 */
export const EventType = z
  .string()
  .max(128)
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*$/,
    'must be words of letters, digits, _ and - with dots between them, such as "order.created"',
  );
export type EventType = z.infer<typeof EventType>;

/** Event types of an endpoint: all (`*`), those with a prefix (`order.*`), or one. */
export const EventTypePattern = z
  .string()
  .max(130)
  .regex(
    /^(?:\*|[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*(?:\.\*)?)$/,
    'must be "*", an event type such as "order.created", or a prefix such as "order.*"',
  );

/** A customer of the user's product, within the namespace. */
export const ApplicationId = z
  .string()
  .max(128)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:@-]*$/,
    'must start with a letter or digit and contain only letters, digits and . _ : @ -',
  );
export type ApplicationId = z.infer<typeof ApplicationId>;

export const EndpointId = z.string().regex(/^ep_[0-9a-z]{26}$/, 'must be an endpoint id such as "ep_…"');
export const MessageId = z.string().regex(/^msg_[0-9a-z]{26}$/, 'must be a message id such as "msg_…"');

/**
 * Status of a message at one endpoint. `dead`: no attempts are left, or the endpoint was disabled. `cancelled`: the
 * endpoint was deleted or moved to another application, or it was a test that failed.
 */
export const MESSAGE_STATUSES = ['waiting', 'retrying', 'succeeded', 'dead', 'cancelled'] as const;
export const MessageStatus = z.enum(MESSAGE_STATUSES);
export type MessageStatus = z.infer<typeof MessageStatus>;

/** `gone`: the endpoint answered 410. `failures`: all attempts failed for five days. */
export const DisabledReason = z.enum(['operator', 'failures', 'gone']);
export type DisabledReason = z.infer<typeof DisabledReason>;

const time = z.number().nullable().describe('Epoch milliseconds');
const count = z.number().int();

export const OutgoingEndpoint = z
  .object({
    id: z.string(),
    application: z.string().nullable(),
    url: z.string(),
    types: z.array(z.string()),
    description: z.string().nullable(),
    rateLimitPerSecond: z.number().nullable(),
    headers: z.record(z.string(), z.string()).describe('Names with masked values'),
    ordered: z.boolean().describe('Whether a message waits until the previous one is done'),
    retrySchedule: z.array(z.number()).describe('Seconds between the attempts'),
    timeoutMs: z.number(),
    disabled: z.boolean(),
    disabledReason: DisabledReason.nullable(),
    disabledAt: time,
    failingSince: time.describe('Start of the failures without a success between; null after a success'),
    previousSecretExpiresAt: time.describe(
      'Until then, messages also have a signature by the previous secret',
    ),
    recentAttempts: z
      .object({ total: count, succeeded: count })
      .describe(`The newest attempts, at most ${MAX_RECENT_ATTEMPTS}`),
    createdAt: z.number(),
    updatedAt: z.number(),
  })
  .meta({ id: 'OutgoingEndpoint' });
export type OutgoingEndpoint = z.infer<typeof OutgoingEndpoint>;

export const MessageCounts = z.object({
  waiting: count,
  retrying: count,
  succeeded: count,
  dead: count,
  cancelled: count,
});
export type MessageCounts = z.infer<typeof MessageCounts>;

export const Message = z
  .object({
    id: z.string().describe('Value of the header `webhook-id`'),
    application: z.string().nullable(),
    type: z.string(),
    timestamp: z.number().describe('Time of the event, in epoch milliseconds'),
    createdAt: z.number(),
    bodyBytes: z.number(),
    traceId: z.string(),
    deliveries: MessageCounts.describe('Number of endpoints by status'),
  })
  .meta({ id: 'Message' });
export type Message = z.infer<typeof Message>;

/** State of a message at one endpoint. */
export const MessageDelivery = z
  .object({
    endpointId: z.string(),
    url: z.string().nullable().describe('Null if the endpoint was deleted'),
    status: MessageStatus,
    attempts: count,
    nextAttemptAt: time,
    lastStatus: z.number().nullable().describe('HTTP status of the last answer'),
    lastError: z.string().nullable(),
    endedAt: time,
  })
  .meta({ id: 'MessageDelivery' });
export type MessageDelivery = z.infer<typeof MessageDelivery>;

export const MessageDetails = Message.extend({
  data: z.unknown(),
  endpoints: z.array(MessageDelivery),
}).meta({ id: 'MessageDetails' });
export type MessageDetails = z.infer<typeof MessageDetails>;

export const AttemptTrigger = z.enum(['first', 'retry', 'replay', 'test']);
export type AttemptTrigger = z.infer<typeof AttemptTrigger>;

export const MessageAttempt = z
  .object({
    messageId: z.string(),
    endpointId: z.string(),
    type: z.string(),
    number: count.describe('1 for the first attempt of the message at the endpoint'),
    trigger: AttemptTrigger,
    startedAt: z.number(),
    durationMs: z.number(),
    outcome: z.enum(['succeeded', 'failed']),
    responseStatus: z.number().nullable().describe('Null without an answer'),
    responseExcerpt: z
      .string()
      .nullable()
      .describe('Start of the answer, at most 2 KB, with escaped control characters'),
    error: z.string().nullable(),
    nextAttemptAt: time,
  })
  .meta({ id: 'MessageAttempt' });
export type MessageAttempt = z.infer<typeof MessageAttempt>;

import { z } from 'zod';
import { bulkFields, matching, NextBulkCursor } from './bulk.ts';
import { Moment, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { LIMITS } from './limits.ts';
import {
  ApplicationId,
  EndpointId,
  EventType,
  EventTypePattern,
  MessageAttempt,
  OutgoingEndpoint,
} from './message-records.ts';
import { RunError } from './workflow-records.ts';

/** Seconds between the attempts of an endpoint without its own schedule. @spec docs/messages.md "Retries" */
export const DEFAULT_RETRY_SCHEDULE = [5, 300, 1800, 7200, 18_000, 36_000, 50_400] as const;
export const DEFAULT_MESSAGE_TIMEOUT_MS = 15_000;

const EndpointUrl = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .refine((url) => {
    const { username, password } = new URL(url);
    return username === '' && password === '';
  }, 'must not contain a user or password');

/** Headers that the platform sets, or that concern one connection. */
const RESERVED_HEADER =
  /^(?:webhook-.*|content-(?:type|length|encoding)|user-agent|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect)$/i;

const HeaderName = z
  .string()
  .max(128)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be a header name')
  .refine((name) => !RESERVED_HEADER.test(name), 'must not be a header that the platform sets');
const HeaderValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII');
const Headers = z
  .record(HeaderName, HeaderValue)
  .refine((headers) => Object.keys(headers).length <= LIMITS.endpointHeaders, {
    error: `must have at most ${LIMITS.endpointHeaders} headers`,
  });

/** `whsec_` and the base64 of 24 to 64 bytes. */
const WebhookSecret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'must be "whsec_" and the base64 of 24 to 64 bytes')
  .refine((secret) => {
    const bytes = base64Bytes(secret.slice('whsec_'.length));
    return bytes >= 24 && bytes <= 64;
  }, 'must be "whsec_" and the base64 of 24 to 64 bytes');

/** Number of bytes that a padded base64 text decodes to, or 0 for an invalid length. */
function base64Bytes(text: string): number {
  if (text.length % 4 !== 0) return 0;
  return (text.length / 4) * 3 - (text.length - text.replace(/=+$/, '').length);
}

const settings = {
  url: EndpointUrl,
  types: z
    .array(EventTypePattern)
    .min(1)
    .max(LIMITS.endpointTypes)
    .overwrite((types) => [...new Set(types)])
    .describe('Event types: "*", "order.created" or "order.*"'),
  description: z.string().max(500).nullable(),
  application: ApplicationId.nullable().describe('Only messages of this application; null: those of none'),
  rateLimitPerSecond: z.number().positive().max(10_000).nullable().describe('Attempts per second'),
  headers: Headers.describe('Further headers of each request'),
  disabled: z.boolean(),
  ordered: z.boolean().describe('Send one message at a time, in the order of their acceptance'),
  retrySchedule: z
    .array(z.number().int().min(1).max(86_400))
    .max(20)
    .nullable()
    .describe('Seconds between the attempts; null: the default'),
  timeoutMs: z.number().int().min(1000).max(60_000).nullable().describe('Time of an attempt; null: 15 s'),
};

const tags = ['endpoints'];
const params = z.object({ id: EndpointId });
const readErrors = ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const;
const oneErrors = [...readErrors, 'NOT_FOUND'] as const;

export const createEndpoint = endpoint({
  method: 'POST',
  path: '/api/v1/endpoints',
  summary: 'Create an endpoint that receives messages; its secret is shown only once',
  tags,
  status: 201,
  body: z.strictObject({
    ...z.object(settings).partial().shape,
    url: settings.url,
    types: settings.types.default(['*']),
    secret: WebhookSecret.optional().describe('Default: a generated one'),
  }),
  reply: OutgoingEndpoint.extend({ secret: z.string().describe('Shown only in this reply') }),
  errors: [...readErrors, 'QUOTA_EXCEEDED'],
});

export const listEndpoints = endpoint({
  method: 'GET',
  path: '/api/v1/endpoints',
  summary: 'List the endpoints of the namespace, newest first',
  tags,
  query: z.strictObject({
    application: ApplicationId.optional(),
    disabled: z.enum(['true', 'false']).optional(),
    cursor: z.string().max(256).optional(),
    limit: z.coerce.number().int().min(1).max(500).default(100),
  }),
  reply: page(OutgoingEndpoint),
  errors: readErrors,
});

export const getEndpoint = endpoint({
  method: 'GET',
  path: '/api/v1/endpoints/:id',
  summary: 'Show an endpoint',
  tags,
  params,
  reply: OutgoingEndpoint,
  errors: oneErrors,
});

/** Changes settings of an endpoint. The fields that are not given keep their value. */
export const updateEndpoint = endpoint({
  method: 'PATCH',
  path: '/api/v1/endpoints/:id',
  summary: 'Change settings of an endpoint',
  tags,
  params,
  body: z.strictObject(settings).partial(),
  reply: OutgoingEndpoint,
  errors: oneErrors,
});

export const deleteEndpoint = endpoint({
  method: 'DELETE',
  path: '/api/v1/endpoints/:id',
  summary: 'Delete an endpoint; its waiting messages are cancelled',
  tags,
  params,
  reply: z.object({ deleted: z.literal(true) }),
  errors: oneErrors,
});

export const rotateEndpoint = endpoint({
  method: 'POST',
  path: '/api/v1/endpoints/:id/rotate',
  summary: 'Replace the secret; for 24 hours, messages also have a signature by the previous one',
  tags,
  params,
  body: z.strictObject({ secret: WebhookSecret.optional() }).prefault({}),
  reply: z.object({ secret: z.string(), previousExpiresAt: z.number() }),
  errors: oneErrors,
});

export const testEndpoint = endpoint({
  method: 'POST',
  path: '/api/v1/endpoints/:id/test',
  summary: 'Send a test message now, once, and answer the attempt',
  tags,
  params,
  body: z
    .strictObject({ type: EventType.default('webhook.test'), data: z.unknown().optional() })
    .prefault({}),
  reply: MessageAttempt,
  errors: [...oneErrors, 'PAYLOAD_TOO_LARGE'],
});

export const listEndpointAttempts = endpoint({
  method: 'GET',
  path: '/api/v1/endpoints/:id/attempts',
  summary: 'List the attempts of an endpoint, newest first',
  tags,
  params,
  query: z.strictObject({
    outcome: z.enum(['succeeded', 'failed']).optional(),
    cursor: z.string().max(256).optional(),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  reply: page(MessageAttempt),
  errors: oneErrors,
});

/** A message that is sent to an endpoint again. */
export const ReplayedMessage = z.object({ messageId: z.string(), endpointId: z.string() });

export const messageReplayReply = z.object({
  items: z.array(ReplayedMessage).describe('The replayed messages'),
  refused: z.array(z.object({ messageId: z.string(), error: RunError })).describe('Always empty'),
  skipped: z.number().describe('At endpoints that are disabled or deleted, or not done yet'),
  matching: matching(ReplayedMessage),
  nextCursor: NextBulkCursor,
});

export const replayEndpoint = endpoint({
  method: 'POST',
  path: '/api/v1/endpoints/:id/replay',
  summary: 'Send messages to the endpoint again, oldest first',
  tags,
  params,
  status: 202,
  body: z
    .strictObject({
      since: Moment.optional(),
      until: Moment.optional(),
      status: z.enum(['dead', 'all']).default('dead'),
      limit: z.number().int().min(1).max(1000).default(1000),
      ...bulkFields,
    })
    .prefault({}),
  reply: messageReplayReply,
  errors: [...oneErrors, 'CONFLICT'],
});

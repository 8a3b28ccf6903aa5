import { z } from 'zod';
import { bulkFields } from './bulk.ts';
import { Moment, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { QueryTime } from './hour-counts.ts';
import {
  ApplicationId,
  EndpointId,
  EventType,
  Message,
  MessageAttempt,
  MessageDetails,
  MessageId,
  MessageStatus,
} from './message-records.ts';
import { messageReplayReply, ReplayedMessage } from './outgoing-endpoints.ts';
import { TraceId } from './traces.ts';
import { END_KEY_PREFIX } from './workflow-starts.ts';

const tags = ['messages'];
const params = z.object({ id: MessageId });
const readErrors = ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const;

/** Key that makes repeated calls publish one message. */
export const MessageIdempotencyKey = z.string().min(1).max(256);

/** What a caller publishes, by API or by `ctx.emit`. */
export const NewMessage = z.strictObject({
  type: EventType,
  data: z
    .unknown()
    .refine((value) => value !== undefined, 'is required')
    .describe('JSON value of at most 256 KB'),
  application: ApplicationId.optional().describe('Send only to the endpoints of this application'),
  idempotencyKey: MessageIdempotencyKey.refine((key) => !key.startsWith(END_KEY_PREFIX), {
    error: `Keys that start with "${END_KEY_PREFIX}" are reserved for handlers of ended runs. Use another key.`,
  })
    .optional()
    .describe(
      `A repeated call answers the first message, for 7 days. Keys that start with "${END_KEY_PREFIX}" are reserved`,
    ),
  timestamp: Moment.optional().describe('Time of the event; default: now'),
});
export type NewMessage = z.output<typeof NewMessage>;

/** Reply to a published message, which is stored. */
export const PublishedMessage = z.object({
  id: z.string(),
  timestamp: z.number().describe('Epoch milliseconds'),
  duplicate: z.boolean().describe('Whether an earlier call with the idempotency key published the message'),
  endpoints: z.number().int().describe('Number of endpoints that receive it'),
});
export type PublishedMessage = z.infer<typeof PublishedMessage>;

/** Stores a message and sends it to the endpoints of its event type. CONFLICT: the key was used for other content. */
export const publishMessage = endpoint({
  method: 'POST',
  path: '/api/v1/messages',
  summary: 'Publish a message to the endpoints of its event type and application',
  tags,
  status: 202,
  body: NewMessage,
  reply: PublishedMessage,
  errors: [...readErrors, 'CONFLICT', 'PAYLOAD_TOO_LARGE', 'SERVICE_UNAVAILABLE'],
});

const filter = {
  type: EventType.optional(),
  application: ApplicationId.optional(),
  endpointId: EndpointId.optional(),
};

/** Lists messages, newest first. With a status, those that have it at an endpoint; `dead` are the dead letters. */
export const listMessages = endpoint({
  method: 'GET',
  path: '/api/v1/messages',
  summary: 'List the messages of the namespace, newest first',
  tags,
  query: z.strictObject({
    ...filter,
    traceId: TraceId.optional().describe('Only messages that were published within this trace'),
    status: MessageStatus.optional().describe('Status at `endpointId`, or at any endpoint'),
    since: QueryTime.optional(),
    until: QueryTime.optional().describe('Only messages before this time'),
    cursor: z.string().max(256).optional(),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  reply: page(Message),
  errors: readErrors,
});

export const getMessage = endpoint({
  method: 'GET',
  path: '/api/v1/messages/:id',
  summary: 'Show a message with its data, and its status at each endpoint',
  tags,
  params,
  reply: MessageDetails,
  errors: [...readErrors, 'NOT_FOUND'],
});

export const listMessageAttempts = endpoint({
  method: 'GET',
  path: '/api/v1/messages/:id/attempts',
  summary: 'List the attempts of a message, newest first',
  tags,
  params,
  query: z.strictObject({
    endpointId: EndpointId.optional(),
    cursor: z.string().max(256).optional(),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  reply: page(MessageAttempt),
  errors: [...readErrors, 'NOT_FOUND'],
});

/** Sends a message again, with the same `webhook-id`. CONFLICT: the endpoint is disabled or not done yet. */
export const replayMessage = endpoint({
  method: 'POST',
  path: '/api/v1/messages/:id/replay',
  summary: 'Send a message again, to all its endpoints or to one',
  tags,
  params,
  status: 202,
  body: z
    .strictObject({
      endpointId: EndpointId.optional().describe('May be an endpoint that did not receive it'),
    })
    .prefault({}),
  reply: z.object({ items: z.array(ReplayedMessage), skipped: z.number() }),
  errors: [...readErrors, 'NOT_FOUND', 'CONFLICT'],
});

export const replayMessages = endpoint({
  method: 'POST',
  path: '/api/v1/messages/replay',
  summary: 'Send many messages again, oldest first',
  tags,
  status: 202,
  body: z.strictObject({
    ...filter,
    since: Moment.optional(),
    until: Moment.optional(),
    status: z.enum(['dead', 'succeeded', 'all']).default('dead').describe('Status at an endpoint'),
    limit: z.number().int().min(1).max(1000).default(1000),
    ...bulkFields,
  }),
  reply: messageReplayReply,
  errors: [...readErrors, 'NOT_FOUND'],
});

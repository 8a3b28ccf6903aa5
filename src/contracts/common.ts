import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/** Error body of every service. @spec Errors: Shapes */
export const ErrorBody = z
  .object({
    error: z.object({ code: z.string(), message: z.string(), details: z.record(z.string(), z.unknown()) }),
  })
  .meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof ErrorBody>;

/** The platform's services. @spec What the service does */
export const SERVICE_NAMES = ['state', 'marketplace', 'workflow', 'rest', 'gateway'] as const;
export const ServiceName = z.enum(SERVICE_NAMES);
export type ServiceName = z.infer<typeof ServiceName>;

/** A fault that degrades a service without stopping it. */
export const Degradation = z
  .object({
    reasonCode: z.string().describe('Reason code of the log line with the details'),
    message: z.string(),
  })
  .meta({ id: 'Degradation' });
export type Degradation = z.infer<typeof Degradation>;

export const Health = z
  .object({
    status: z
      .enum(['ok', 'degraded', 'draining'])
      .describe('degraded: the service runs, but an operator should look at `degraded`'),
    service: ServiceName,
    version: z.string(),
    uptimeMs: z.number(),
    degraded: z.array(Degradation).optional(),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof Health>;

const healthReply = { summary: 'Whether this service is alive', tags: ['health'], reply: Health } as const;

/** Reports the health of a service. @spec Health, metrics, specification */
export const health = endpoint({ method: 'GET', path: '/health', ...healthReply });
/** Reports the same health as `/health`, under the path of the API. @spec Health, metrics, specification */
export const apiHealth = endpoint({ method: 'GET', path: '/api/v1/health', ...healthReply });

export const Ready = z.object({ ready: z.literal(true), service: ServiceName }).meta({ id: 'Ready' });
export type Ready = z.infer<typeof Ready>;

const readyReply = {
  summary: 'Whether this service should receive requests; details.reasons of a 503 says why not',
  tags: ['health'],
  reply: Ready,
  errors: ['SERVICE_UNAVAILABLE'],
} as const;

/** Reports whether load balancers should send requests to a service. @spec docs/operations.md "svc status" */
export const ready = endpoint({ method: 'GET', path: '/ready', ...readyReply });
/** Reports the same result as `/ready`, under the path of the API. @spec docs/operations.md "svc status" */
export const apiReady = endpoint({ method: 'GET', path: '/api/v1/ready', ...readyReply });

/** A date and time with `Z` or an offset. The schema converts the time to epoch milliseconds. */
export const IsoTime = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** The latest time that a JavaScript Date can represent. */
const MAX_EPOCH_MS = 8.64e15;

/** A time in a request body. The schema converts the time to epoch milliseconds. */
export const Moment = z
  .union([z.number().int().min(0).max(MAX_EPOCH_MS), IsoTime], {
    error:
      'must be epoch milliseconds or an ISO 8601 date and time with Z or an offset, as in 2030-01-31T12:00:00Z',
  })
  .describe('Epoch milliseconds, or an ISO 8601 date and time with Z or an offset');

/** Rejects an empty number in a query, because coercion would convert the empty text to 0. */
export function notBlank<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => (value === '' ? Number.NaN : value), schema);
}

/**
 * Query of a list without filters. Unknown parameters are rejected, because a list that ignores a filter would return
 * too much.
 */
export const NoFilters = z.strictObject({}).prefault({});

/** Returns the schema of a page of a list. `nextCursor` is null on the last page. */
export function page<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() });
}

/** Names of headers that the platform sets or reads, in lower case. @spec Endpoints; Webhook delivery */
export const HEADERS = {
  tenant: 'x-tenant-id',
  host: 'x-svc-host-id',
  /** Role of the caller in its namespace; "none" without one. Only the gateway sets it. */
  role: 'x-svc-role',
  /**
   * "true" for administrators of the platform without any role, or with the role `admin` for all namespaces. Only the
   * gateway sets it.
   */
  administrator: 'x-svc-administrator',
  /** How the caller reached the gateway, if by its MCP endpoint. Only the gateway sets it. */
  via: 'x-svc-via',
  requestId: 'x-request-id',
  traceId: 'x-trace-id',
  internalSecret: 'x-internal-secret',
  namespace: 'x-svc-namespace',
  webhookId: 'x-webhook-id',
  /**
   * Header for authentication between services. The value is a key derived from the internal secret, never the secret
   * itself.
   */
  serviceKey: 'x-svc-service-key',
  /** Id of the delivery on whose behalf a service calls another one. */
  deliveryId: 'x-svc-delivery-id',
  /** Marks the response of a dispatch as a stream. The value is the execution id. */
  stream: 'x-svc-stream',
  /** Marks a dispatch that another gateway has forwarded. The receiving gateway must not forward the dispatch again. */
  ownerCall: 'x-svc-owner-call',
  /** Marks a step call that another workflow service has forwarded. The receiving service must not forward it again. */
  forwardedStep: 'x-svc-forwarded-step',
  /** Proof that a call with a session cookie comes from the studio's own pages. */
  csrf: 'x-svc-csrf',
} as const;

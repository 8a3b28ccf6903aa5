import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/** The body of every error of every daemon. @spec Errors: Shapes */
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

/** Something of a service that does not work as it should, while the service goes on. */
export const Degradation = z
  .object({
    reasonCode: z.string().describe('That of the log line which tells more'),
    message: z.string(),
  })
  .meta({ id: 'Degradation' });
export type Degradation = z.infer<typeof Degradation>;

export const Health = z
  .object({
    status: z
      .enum(['ok', 'degraded', 'draining'])
      .describe('degraded: it serves, and what `degraded` lists wants an operator'),
    service: ServiceName,
    version: z.string(),
    uptimeMs: z.number(),
    degraded: z.array(Degradation).optional(),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof Health>;

const healthReply = { summary: 'Whether this service is alive', tags: ['health'], reply: Health } as const;

/** @spec Health, metrics, specification */
export const health = endpoint({ method: 'GET', path: '/health', ...healthReply });
/** @spec Health, metrics, specification */
export const apiHealth = endpoint({ method: 'GET', path: '/api/v1/health', ...healthReply });

/** A date and time with `Z` or an offset; read as epoch milliseconds. */
export const IsoTime = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** The last moment that a date can tell. */
const LATEST_MS = 8.64e15;

/** A moment in a body; read as epoch milliseconds. */
export const Moment = z
  .union([z.number().int().min(0).max(LATEST_MS), IsoTime], {
    error:
      'must be epoch milliseconds or an ISO 8601 date and time with Z or an offset, as in 2030-01-31T12:00:00Z',
  })
  .describe('Epoch milliseconds, or an ISO 8601 date and time with Z or an offset');

/** For numbers in a query: an empty value is no number, where coercion alone would take it for 0. */
export function notBlank<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => (value === '' ? Number.NaN : value), schema);
}

/** The query of a list without filters: an unknown one is refused instead of ignored. */
export const NoFilters = z.strictObject({}).prefault({});

/** A page of a list; `nextCursor` is null on the last one. */
export function page<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() });
}

/** Headers the platform sets or reads, in lower case. @spec Endpoints; Webhook delivery */
export const HEADERS = {
  tenant: 'x-tenant-id',
  host: 'x-svc-host-id',
  requestId: 'x-request-id',
  traceId: 'x-trace-id',
  internalSecret: 'x-internal-secret',
  namespace: 'x-svc-namespace',
  webhookId: 'x-webhook-id',
  /** Proof that a call comes from a daemon: a key derived from the internal secret, never the secret itself. */
  serviceKey: 'x-svc-service-key',
  /** The answer of a dispatch is a stream: the execution's id. */
  stream: 'x-svc-stream',
} as const;

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

/** @spec Health, metrics, specification */
export const health = endpoint({ method: 'GET', path: '/health', ...healthReply });
/** @spec Health, metrics, specification */
export const apiHealth = endpoint({ method: 'GET', path: '/api/v1/health', ...healthReply });

/** A date and time with `Z` or an offset; parsed to epoch milliseconds. */
export const IsoTime = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** Latest time a JavaScript Date can represent. */
const MAX_EPOCH_MS = 8.64e15;

/** A time in a request body; parsed to epoch milliseconds. */
export const Moment = z
  .union([z.number().int().min(0).max(MAX_EPOCH_MS), IsoTime], {
    error:
      'must be epoch milliseconds or an ISO 8601 date and time with Z or an offset, as in 2030-01-31T12:00:00Z',
  })
  .describe('Epoch milliseconds, or an ISO 8601 date and time with Z or an offset');

/** For numbers in a query: rejects an empty value, which coercion would read as 0. */
export function notBlank<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => (value === '' ? Number.NaN : value), schema);
}

/** Query of a list without filters: unknown parameters are rejected, not ignored. */
export const NoFilters = z.strictObject({}).prefault({});

/** A page of a list; `nextCursor` is null on the last one. */
export function page<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() });
}

/** Headers the platform sets or reads, lower-case. @spec Endpoints; Webhook delivery */
export const HEADERS = {
  tenant: 'x-tenant-id',
  host: 'x-svc-host-id',
  requestId: 'x-request-id',
  traceId: 'x-trace-id',
  internalSecret: 'x-internal-secret',
  namespace: 'x-svc-namespace',
  webhookId: 'x-webhook-id',
  /** Authenticates one service to another: a key derived from the internal secret, never the secret itself. */
  serviceKey: 'x-svc-service-key',
  /** Marks a dispatch response as a stream; the value is the execution id. */
  stream: 'x-svc-stream',
} as const;

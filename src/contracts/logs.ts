import { z } from 'zod';
import { notBlank } from './common.ts';
import { endpoint } from './endpoint.ts';

/** One line of a service's log as kept. @spec Log record; Diagnostic events */
export const LogRecord = z
  .object({
    level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
    time: z.number().describe('Epoch milliseconds'),
    serviceId: z.string(),
    logsSource: z.string(),
    layer: z.string(),
    requestId: z.string().optional(),
    traceId: z.string().optional(),
    spanId: z.string().optional(),
    tenantId: z.string().optional(),
    pluginId: z.string().optional(),
    message: z.string(),
    meta: z.record(z.string(), z.unknown()).optional(),
    domain: z.string().optional().describe('This and the fields below: diagnostic events alone'),
    event: z.string().optional(),
    reasonCode: z.string().optional(),
    outcome: z.string().optional(),
    error: z.unknown().optional(),
    evidence: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'LogRecord' });
export type LogRecord = z.infer<typeof LogRecord>;

/** A list that is paged by position: what logs and analytics answer. */
export function offsetPage<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    total: z.number().int().describe('Log records are counted up to 10,000'),
    limit: z.number().int(),
    offset: z.number().int(),
  });
}

/** Whose records: callers see their own namespace, administrators everything unless they name one. */
export const tenantQuery = z
  .string()
  .max(128)
  .optional()
  .describe('A namespace; the own one for callers who are no administrators, who by default see all');

/** Query parameters of everything paged by position. */
export const offsetQuery = {
  from: z.string().max(64).optional().describe('Epoch milliseconds or an ISO 8601 time; included'),
  to: z.string().max(64).optional().describe('Epoch milliseconds or an ISO 8601 time; excluded'),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  offset: notBlank(z.coerce.number().int().min(0).default(0)),
};

/** Query parameters of everything that can be followed. */
export const followQuery = {
  follow: z
    .enum(['0', '1', 'true', 'false'])
    .optional()
    .describe('1: the latest `limit` records, oldest first, then each new one as it comes'),
  after: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('With follow: go on after this event id, as `Last-Event-ID` does'),
};
/** 0: with follow, nothing that was before. */
export const followLimit = notBlank(z.coerce.number().int().min(0).max(1000).default(100));

export const queryLogs = endpoint({
  method: 'GET',
  path: '/api/v1/logs',
  summary: 'Query the kept log records, newest first; with follow=1 as a stream of server-sent events',
  tags: ['logs'],
  query: z.strictObject({
    level: LogRecord.shape.level.optional().describe('This level and those above it'),
    service: z.string().max(256).optional().describe('One service, or several with commas between'),
    requestId: z.string().max(128).optional(),
    traceId: z.string().max(128).optional(),
    tenantId: tenantQuery,
    pluginId: z.string().max(214).optional(),
    runId: z.string().max(128).optional(),
    search: z.string().max(256).optional().describe('Words of the message; the last may be a beginning'),
    ...followQuery,
    ...offsetQuery,
    limit: followLimit,
  }),
  reply: offsetPage(LogRecord).extend({
    dropped: z
      .object({
        logs: z.number().int(),
        events: z.number().int(),
        unattributed: z
          .number()
          .int()
          .describe(
            "Lines whose tenant is not known: a tenant's counts lack them, the counts of all have them",
          ),
      })
      .describe(
        'Log records and events of these services and minutes that came beyond the rate that is kept',
      ),
  }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

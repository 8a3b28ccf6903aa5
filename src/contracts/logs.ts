import { z } from 'zod';
import { notBlank } from './common.ts';
import { endpoint } from './endpoint.ts';

/** A log line as it is stored. @spec Log record; Diagnostic events */
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
    domain: z.string().optional().describe('This and the following fields: diagnostic events only'),
    event: z.string().optional(),
    reasonCode: z.string().optional(),
    outcome: z.string().optional(),
    error: z.unknown().optional(),
    evidence: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'LogRecord' });
export type LogRecord = z.infer<typeof LogRecord>;

/** Returns the page schema of an offset-paginated list, such as logs or analytics. */
export function offsetPage<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    total: z.number().int().describe('Log records are counted up to 10,000'),
    limit: z.number().int(),
    offset: z.number().int(),
  });
}

/**
 * Filters by tenant. Administrators see all namespaces unless the query specifies a namespace. Other callers see only
 * the namespace of their token.
 */
export const tenantQuery = z
  .string()
  .max(128)
  .optional()
  .describe("A namespace; default: all for administrators, else the caller's");

/** Query parameters of lists with offset pagination. */
export const offsetQuery = {
  from: z.string().max(64).optional().describe('Epoch milliseconds or an ISO 8601 time; inclusive'),
  to: z.string().max(64).optional().describe('Epoch milliseconds or an ISO 8601 time; exclusive'),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  offset: notBlank(z.coerce.number().int().min(0).default(0)),
};

/** Query parameters of lists that can also stream new records. */
export const followQuery = {
  follow: z
    .enum(['0', '1', 'true', 'false'])
    .optional()
    .describe('1: stream the latest `limit` records, oldest first, then each new one'),
  after: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('With follow: resume after this event id, like `Last-Event-ID`'),
};
/** Maximum number of existing records to return. With `follow`, 0 returns only new records. */
export const followLimit = notBlank(z.coerce.number().int().min(0).max(1000).default(100));

export const queryLogs = endpoint({
  method: 'GET',
  path: '/api/v1/logs',
  summary: 'Query stored log records, newest first; with follow=1 as a stream of server-sent events',
  tags: ['logs'],
  query: z.strictObject({
    level: LogRecord.shape.level.optional().describe('This level and above'),
    service: z.string().max(256).optional().describe('One service, or several separated by commas'),
    requestId: z.string().max(128).optional(),
    traceId: z.string().max(128).optional(),
    tenantId: tenantQuery,
    pluginId: z.string().max(214).optional(),
    runId: z.string().max(128).optional(),
    search: z.string().max(256).optional().describe('Words of the message; the last one may be a prefix'),
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
            "Lines without a known tenant: excluded from a tenant's counts, included in the counts over all tenants",
          ),
      })
      .describe('Log records and events dropped by the rate limit, for the selected services and minutes'),
  }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

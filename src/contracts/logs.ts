import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/** One line of a service's log as kept. @spec Log record */
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
  })
  .meta({ id: 'LogRecord' });
export type LogRecord = z.infer<typeof LogRecord>;

/** A list that is paged by position: what logs and analytics answer. @spec docs/decisions.md "List replies" */
export function offsetPage<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    total: z.number().int(),
    limit: z.number().int(),
    offset: z.number().int(),
  });
}

/** Query parameters of everything paged by position. */
export const offsetQuery = {
  from: z.string().max(64).optional().describe('Epoch milliseconds or an ISO 8601 time; included'),
  to: z.string().max(64).optional().describe('Epoch milliseconds or an ISO 8601 time; excluded'),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  offset: z.coerce.number().int().min(0).default(0),
};

export const queryLogs = endpoint({
  method: 'GET',
  path: '/api/v1/logs',
  summary: 'Query the kept log records, newest first',
  tags: ['logs'],
  query: z.object({
    level: LogRecord.shape.level.optional().describe('This level and those above it'),
    service: z.string().max(64).optional(),
    requestId: z.string().max(128).optional(),
    traceId: z.string().max(128).optional(),
    pluginId: z.string().max(214).optional(),
    runId: z.string().max(128).optional(),
    search: z.string().max(256).optional(),
    ...offsetQuery,
  }),
  reply: offsetPage(LogRecord),
});

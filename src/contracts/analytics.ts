import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { PluginId } from './ids.ts';
import { followLimit, followQuery, offsetPage, offsetQuery, tenantQuery } from './logs.ts';

/** Value of the `schema` field in every analytics event. @spec Versioning */
export const ANALYTICS_SCHEMA = 'svc.v1';

/** An analytics event as it is stored and returned. @spec Analytics event */
export const AnalyticsEvent = z
  .object({
    id: z.string(),
    schema: z.literal(ANALYTICS_SCHEMA),
    type: z.string(),
    ts: z.iso.datetime(),
    ingestTs: z.iso.datetime(),
    source: z.object({ product: z.string(), version: z.string() }),
    runId: z.string(),
    actor: z
      .object({
        type: z.enum(['user', 'agent', 'ci']),
        id: z.string().optional(),
        name: z.string().optional(),
      })
      .optional(),
    ctx: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
    payload: z.unknown().optional(),
  })
  .meta({ id: 'AnalyticsEvent' });
export type AnalyticsEvent = z.infer<typeof AnalyticsEvent>;

const tags = ['analytics'];
const filters = {
  type: z.string().max(256).optional(),
  source: z.string().max(256).optional().describe('Product that emitted the event'),
  tenantId: tenantQuery,
  ...offsetQuery,
};
const { limit: _limit, offset: _offset, ...aggregateFilters } = filters;

export const listEvents = endpoint({
  method: 'GET',
  path: '/api/v1/analytics/events',
  summary: 'List analytics events, newest first; with follow=1 as a stream of server-sent events',
  tags,
  query: z.strictObject({
    ...filters,
    traceId: z.string().max(128).optional(),
    ...followQuery,
    limit: followLimit,
  }),
  reply: offsetPage(AnalyticsEvent),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

export const eventStats = endpoint({
  method: 'GET',
  path: '/api/v1/analytics/stats',
  summary: 'Count events by type, source and actor',
  tags,
  query: z.strictObject(aggregateFilters),
  reply: z.object({
    total: z.number().int(),
    byType: z.record(z.string(), z.number().int()),
    bySource: z.record(z.string(), z.number().int()),
    byActor: z
      .record(z.string(), z.number().int())
      .describe('Keys are `<type>:<id>`; the 100 most frequent actors'),
  }),
});

export const dailyEventStats = endpoint({
  method: 'GET',
  path: '/api/v1/analytics/daily',
  summary: 'Count events per day (UTC)',
  tags,
  query: z.strictObject(aggregateFilters),
  reply: z.object({
    items: z.array(
      z.object({
        date: z.iso.date(),
        total: z.number().int(),
        byType: z.record(z.string(), z.number().int()),
      }),
    ),
  }),
});

/** Shows the newest use of each permission, which is reported at most once a day per tenant and process. */
export const listPermissionUses = endpoint({
  method: 'GET',
  path: '/api/v1/analytics/permission-uses',
  summary: 'Show when a plugin last used each of its permissions',
  tags,
  query: z.strictObject({ pluginId: PluginId, tenantId: tenantQuery }),
  reply: z.object({
    items: z.array(
      z.object({
        permission: z.string().describe('As in installation plans'),
        lastUsedAt: z.number().describe('Epoch milliseconds'),
      }),
    ),
  }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN'],
});

/**
 * Alias of `dailyEventStats` below `/stats`. The alias has no tags, because the API description should list the
 * operation only once.
 */
export const dailyEventStatsAlias = endpoint({
  method: 'GET',
  path: '/api/v1/analytics/stats/daily',
  query: dailyEventStats.query!,
  reply: dailyEventStats.reply,
});

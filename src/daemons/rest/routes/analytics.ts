import {
  dailyEventStats,
  dailyEventStatsAlias,
  eventStats,
  listEvents,
  listPermissionUses,
  type Validated,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { EventFilter } from '../../../store/ports/telemetry.ts';
import { given, timeRange, visibleTenant } from '../domain/logs-scope.ts';
import type { RestServices } from '../services.ts';
import { createRecordStreams, follows } from './record-stream.ts';

/**
 * Routes to list analytics events and their statistics. @spec REST API: analytics; docs/observability.md "Analytics"
 */
export function analyticsRoutes(http: Http, { telemetry, observe, admins }: RestServices): void {
  type Asked = Validated<typeof eventStats | typeof listEvents> & {
    caller: Parameters<typeof visibleTenant>[0];
  };

  const stream = createRecordStreams(http, 'events');

  function filterOf({ query, caller }: Pick<Asked, 'query' | 'caller'>): EventFilter {
    const tenantId = visibleTenant(caller, query.tenantId, admins);
    return {
      ...given(query, ['type', 'source']),
      ...('traceId' in query ? given(query, ['traceId']) : {}),
      ...timeRange(query),
      ...(tenantId === undefined ? {} : { tenantId }),
    };
  }
  mount(http, listEvents, { auth: 'caller' }, async (asked) => {
    const { limit, offset } = asked.query;
    const filter = filterOf(asked);
    if (follows(asked.query)) {
      const source = {
        latest: (count: number) => telemetry.latestEvents(filter, count),
        after: (id: number, count: number) => telemetry.eventsAfter(filter, id, count),
      };
      await stream(source, asked.query, asked);
      return asked.reply;
    }
    const page = await observe('analytics', 'list_events', () => telemetry.events(filter, { limit, offset }));
    return { ...page, limit, offset };
  });
  mount(http, eventStats, { auth: 'caller' }, (asked) => {
    const filter = filterOf(asked);
    return observe('analytics', 'event_stats', () => telemetry.stats(filter));
  });
  mount(http, listPermissionUses, { auth: 'caller' }, async ({ query: { pluginId, tenantId }, caller }) => {
    const visible = visibleTenant(caller, tenantId, admins);
    const filter = { pluginId, ...(visible === undefined ? {} : { tenantId: visible }) };
    const uses = await observe('analytics', 'permission_uses', () => telemetry.permissionUses(filter));
    return { items: uses.map(({ permission, usedAt }) => ({ permission, lastUsedAt: usedAt })) };
  });
  for (const endpoint of [dailyEventStats, dailyEventStatsAlias]) {
    mount(http, endpoint, { auth: 'caller' }, async (asked) => {
      const filter = filterOf(asked);
      return { items: await observe('analytics', 'daily_event_stats', () => telemetry.daily(filter)) };
    });
  }
}

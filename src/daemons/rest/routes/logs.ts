import { queryLogs, type Validated } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { LogFilter } from '../../../store/ports/telemetry.ts';
import { given, timeRange, visibleTenant } from '../domain/logs-scope.ts';
import type { RestServices } from '../services.ts';
import { createRecordStreams, follows } from './record-stream.ts';

type Query = Validated<typeof queryLogs>['query'];

/** Routes to query and follow log records. @spec REST API: logs; docs/observability.md "Logs" */
export function logRoutes(http: Http, { telemetry, observe, admins }: RestServices): void {
  const stream = createRecordStreams(http, 'logs');

  mount(http, queryLogs, { auth: 'caller' }, async (call) => {
    const { query, caller } = call;
    const tenantId = visibleTenant(caller, query.tenantId, admins);
    const filter = filterOf(query, tenantId);
    if (!follows(query)) {
      const { limit, offset } = query;
      const page = await observe('logs', 'query_logs', () => telemetry.logs(filter, { limit, offset }));
      return { ...page, limit, offset };
    }
    const source = {
      latest: (limit: number) => telemetry.latestLogs(filter, limit),
      after: (id: number, limit: number) => telemetry.logsAfter(filter, id, limit),
    };
    await stream(source, query, call);
    return call.reply;
  });
}

function filterOf(query: Query, tenantId: string | undefined): LogFilter {
  const services = query.service?.split(',').filter(Boolean);
  return {
    ...given(query, ['requestId', 'traceId', 'pluginId', 'runId', 'search']),
    ...timeRange(query),
    ...(query.level ? { level: query.level } : {}),
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(services?.length ? { services } : {}),
  };
}

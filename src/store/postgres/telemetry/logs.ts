import type { LogRecord } from '../../../contracts/index.ts';
import { LOG_LEVELS } from '../../../kit/telemetry/logger.ts';
import type {
  DroppedCounts,
  LogFilter,
  NumberedLog,
  Paging,
  TelemetryQueries,
} from '../../ports/telemetry.ts';
import {
  type DroppedSum,
  droppedCountsOf,
  minuteOf,
  UNKNOWN_TENANT,
} from '../../telemetry/dropped-counts.ts';
import { type LogRow, logRecordOf, numberedLog } from '../../telemetry/log-rows.ts';
import type { PostgresDatabase } from '../database.ts';
import { type Parameter, RecordTable, select } from './record-table.ts';
import { indexedText, jsonText, searchQuery } from './texts.ts';

const MAX_COUNTED = 10_000;
const COLUMNS = `id, time, level, service, tenant_id, request_id, trace_id, span_id, plugin_id, run_id, source, layer,
  message, meta, extra`;

export class PostgresLogs implements Pick<TelemetryQueries, 'logs' | 'logsAfter' | 'latestLogs'> {
  readonly #database: PostgresDatabase;
  readonly #table: RecordTable<LogRow, LogFilter>;

  constructor(database: PostgresDatabase) {
    this.#database = database;
    this.#table = new RecordTable(database, {
      ...{ kind: 'log', columns: COLUMNS, time: 'time', conditions },
      searches: ({ search }) => search !== undefined,
    });
  }

  async logs(
    filter: LogFilter,
    paging: Paging,
  ): Promise<{ items: LogRecord[]; total: number; dropped: DroppedCounts }> {
    const rows = await this.#table.page(filter, paging);
    return {
      items: rows.map(logRecordOf),
      total: await this.#table.count(filter, MAX_COUNTED),
      dropped: await this.#dropped(filter),
    };
  }

  async logsAfter(filter: LogFilter, after: number, limit: number): Promise<NumberedLog[]> {
    return (await this.#table.after(filter, after, limit)).map(numberedLog);
  }

  async latestLogs(filter: LogFilter, limit: number): Promise<{ items: NumberedLog[]; after: number }> {
    const { rows, after } = await this.#table.latest(filter, limit);
    return { items: rows.map(numberedLog), after };
  }

  async #dropped({
    from = 0,
    to = Number.MAX_SAFE_INTEGER,
    tenantId,
    services,
  }: LogFilter): Promise<DroppedCounts> {
    const rows = await select<DroppedSum>(this.#database, (p) => {
      const all = [
        `minute >= ${p(minuteOf(Math.ceil(from)))}`,
        `minute < ${p(Math.ceil(to))}`,
        ...(tenantId === undefined
          ? []
          : [`tenant_id in (${p(indexedText(tenantId))}, '${UNKNOWN_TENANT}')`]),
        ...(services ? [`service = any(${p(services.map(indexedText))})`] : []),
      ];
      return `select kind, tenant_id = '${UNKNOWN_TENANT}' as "isUnknown", sum(count) as count
        from svc.telemetry_dropped where ${all.join(' and ')} group by 1, 2`;
    });
    return droppedCountsOf(rows, { tenantId });
  }
}

function conditions(filter: LogFilter, parameter: Parameter): string[] {
  const all: string[] = [];
  const columns = {
    request_id: filter.requestId,
    trace_id: filter.traceId,
    run_id: filter.runId,
    plugin_id: filter.pluginId,
    tenant_id: filter.tenantId,
  };
  for (const [column, value] of Object.entries(columns))
    if (value !== undefined) all.push(`${column} = ${parameter(indexedText(value))}`);
  if (filter.level !== undefined && filter.level !== 'trace')
    all.push(`level >= ${parameter(LOG_LEVELS.indexOf(filter.level))}`);
  if (filter.services) all.push(`service = any(${parameter(filter.services.map(jsonText))})`);
  if (filter.search !== undefined) {
    const query = searchQuery(filter.search);
    all.push(query === undefined ? 'false' : `words @@ ${parameter(query)}::tsquery`);
  }
  return all;
}

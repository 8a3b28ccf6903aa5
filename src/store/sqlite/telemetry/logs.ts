import { LOG_LEVELS } from '../../../kit/telemetry/logger.ts';
import type { KeptLog, LogFilter, TelemetryQueries } from '../../ports/telemetry.ts';
import { type LogRow, logRecordOf, logRowOf, numberedLog, wordsOf } from '../../telemetry/log-rows.ts';
import type { Database } from '../database.ts';
import { droppedCounter } from './dropped-records.ts';

const MAX_COUNTED = 10_000;

/** Returns a function that inserts a log record. The function must be called in a transaction. */
export function logInserter(db: Database): (log: KeptLog) => void {
  const insert = db.prepare<[Omit<LogRow, 'id'>]>(`
    insert into log (time, level, service, tenant_id, request_id, trace_id, span_id, plugin_id, run_id, source, layer, message, meta, extra)
    values (:time, :level, :service, :tenant_id, :request_id, :trace_id, :span_id, :plugin_id, :run_id, :source, :layer, :message, :meta, :extra)`);
  const index = db.prepare<[number | bigint, string]>('insert into log_text (rowid, message) values (?, ?)');
  return (log) => {
    const { lastInsertRowid } = insert.run(logRowOf(log));
    index.run(lastInsertRowid, log.message);
  };
}

type LogQueries = Pick<TelemetryQueries, 'logs' | 'logsAfter' | 'latestLogs'>;

export function logQueries(db: Database): LogQueries {
  const latest = db.prepare<[], number | null>('select max(id) from log').pluck();
  const countDropped = droppedCounter(db);

  function newest(filter: LogFilter, limit: number, offset: number): LogRow[] {
    if (limit === 0) return [];
    const { from, order, values } = plan(filter);
    return db
      .prepare<unknown[], LogRow>(`select log.* from ${from} order by ${order} limit ? offset ?`)
      .all(...values, limit, offset);
  }
  function count(filter: LogFilter): number {
    const { from, values } = plan(filter);
    return db
      .prepare<unknown[], number>(`select count(*) from (select 1 from ${from} limit ${MAX_COUNTED})`)
      .pluck()
      .get(...values)!;
  }
  return {
    logs: (filter, { limit, offset }) =>
      db.read(() => ({
        items: newest(filter, limit, offset).map(logRecordOf),
        total: count(filter),
        dropped: countDropped(filter),
      })),
    logsAfter: (filter, after, limit) =>
      db.read(() => {
        const { conditions, values } = where(filter);
        const text = textQuery(filter.search);
        const matches =
          text === undefined ? [] : ['id in (select rowid from log_text where log_text match ?)'];
        const all = ['id > ?', ...conditions, ...matches].join(' and ');
        return db
          .prepare<unknown[], LogRow>(`select * from log not indexed where ${all} order by id limit ?`)
          .all(after, ...values, ...(text === undefined ? [] : [text]), limit)
          .map(numberedLog);
      }),
    latestLogs: (filter, limit) =>
      db.read(() => {
        // The cursor is read before the records, so that no concurrent record is missed.
        const after = latest.get() ?? 0;
        const items = newest(filter, limit, 0).map(numberedLog);
        return { items: items.filter(({ id }) => id <= after).sort((a, b) => a.id - b.id), after };
      }),
  };
}

/**
 * Builds a query that names the index to use. SQLite has no statistics on this table, so the query planner could choose
 * a slow index.
 */
function plan(filter: LogFilter): { from: string; order: string; values: unknown[] } {
  const { conditions, values } = where(filter);
  const index = indexFor(filter);
  const text = textQuery(filter.search);
  if (text === undefined) {
    return {
      from: `log indexed by ${index} where ${['true', ...conditions].join(' and ')}`,
      order: 'log.time desc, log.id desc',
      values,
    };
  }
  if (index === 'log_request' || index === 'log_trace' || index === 'log_run') {
    const all = [...conditions, 'id in (select rowid from log_text where log_text match ?)'].join(' and ');
    return {
      from: `log indexed by ${index} where ${all}`,
      order: 'log.time desc, log.id desc',
      values: [...values, text],
    };
  }
  const all = ['log_text match ?', ...conditions].join(' and ');
  return {
    from: `log_text cross join log on log.id = log_text.rowid where ${all}`,
    order: 'log_text.rowid desc',
    values: [text, ...values],
  };
}

function indexFor(filter: LogFilter): string {
  if (filter.requestId !== undefined) return 'log_request';
  if (filter.traceId !== undefined) return 'log_trace';
  if (filter.runId !== undefined) return 'log_run';
  if (filter.pluginId !== undefined) return 'log_plugin';
  return filter.tenantId === undefined ? 'log_time' : 'log_tenant';
}

function where(filter: LogFilter): { conditions: string[]; values: unknown[] } {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const add = (condition: string, ...given: unknown[]): void => {
    if (given.includes(undefined)) return;
    conditions.push(condition);
    values.push(...given);
  };
  add('request_id = ?', filter.requestId);
  add('trace_id = ?', filter.traceId);
  add('run_id = ?', filter.runId);
  add('plugin_id = ?', filter.pluginId);
  add('tenant_id = ?', filter.tenantId);
  add('time >= ?', filter.from);
  add('time < ?', filter.to);
  if (filter.level !== undefined && filter.level !== 'trace')
    add('level >= ?', LOG_LEVELS.indexOf(filter.level));
  const { services } = filter;
  if (services) add(`service in (${services.map(() => '?').join(', ')})`, ...services);
  return { conditions, values };
}

/** Returns the FTS5 query for a search. All words must match. The last word also matches as a prefix. */
function textQuery(search: string | undefined): string | undefined {
  if (search === undefined) return undefined;
  const words = wordsOf(search);
  return words.length > 0 ? `${words.map((word) => `"${word}"`).join(' ')}*` : '""';
}

import type { Clock } from '../../../kit/time/clock.ts';
import type { TelemetryCounts, TelemetryReader, TelemetryStore } from '../../ports/telemetry.ts';
import type { PostgresDatabase } from '../database.ts';
import { TelemetryAppender } from './append.ts';
import { PostgresEvents } from './events.ts';
import { telemetryHealth } from './health.ts';
import { PostgresLogs } from './logs.ts';
import { readPermissionUses } from './permission-uses.ts';
import { TelemetryRetention } from './retention.ts';

export interface PostgresTelemetryOptions {
  /** Replaces the clock of the database in tests. */
  clock?: Clock;
  /** Id of this node. The store counts records by node, and `counts` returns those of this node. */
  node?: string | undefined;
}

/** Telemetry in PostgreSQL. Closing the store closes the database. */
export function postgresTelemetryStore(
  database: PostgresDatabase,
  { clock, node = '' }: PostgresTelemetryOptions = {},
): TelemetryStore & TelemetryReader {
  const appender = new TelemetryAppender(database, { clock, node });
  const retention = new TelemetryRetention(database, clock);
  const logs = new PostgresLogs(database);
  const events = new PostgresEvents(database);
  return {
    append: (batch) => appender.append(batch),
    prune: (limits) => retention.prune(limits),
    logs: (filter, paging) => logs.logs(filter, paging),
    logsAfter: (filter, after, limit) => logs.logsAfter(filter, after, limit),
    latestLogs: (filter, limit) => logs.latestLogs(filter, limit),
    events: (filter, paging) => events.events(filter, paging),
    eventsAfter: (filter, after, limit) => events.eventsAfter(filter, after, limit),
    latestEvents: (filter, limit) => events.latestEvents(filter, limit),
    stats: (filter) => events.stats(filter),
    daily: (filter) => events.daily(filter),
    permissionUses: (filter) => readPermissionUses(database, filter),
    counts: () => readCounts(database, node),
    health: () => telemetryHealth(database),
    close: () => database.close(),
  };
}

async function readCounts(database: PostgresDatabase, node: string): Promise<TelemetryCounts> {
  const { rows } = await database.sql<{ name: string; value: number }>(
    'select name, value from svc.telemetry_node_count where node = $1',
    [node],
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

import type { TelemetryHealth } from '../../ports/telemetry.ts';
import type { PostgresDatabase } from '../database.ts';

/** Returns the state of the telemetry tables by the statistics of the server, without reading the tables. */
export async function telemetryHealth(database: PostgresDatabase): Promise<TelemetryHealth> {
  const { rows } = await database.sql<{ partitions: number; deadRows: number }>(
    `select count(*) filter (where relname ~ '^(log|event)_[0-9]{8}$') as partitions,
       coalesce(sum(n_dead_tup), 0)::bigint as "deadRows"
     from pg_stat_user_tables where schemaname = 'svc'
       and (relname ~ '^(log|event)_[0-9]{8}$' or relname like 'telemetry\\_%' or relname = 'event_count')`,
  );
  return rows[0]!;
}

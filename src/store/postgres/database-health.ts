import type { DatabaseHealth, StandbyHealth, StoreMonitor, TableHealth } from '../ports/index.ts';
import type { PostgresDatabase } from './database.ts';
import { memberOverview } from './member-overview.ts';
import { QUEUE_TABLES } from './storage-settings.ts';

/** Time during which callers share one result, so that a scrape runs the queries once. */
const CACHE_MS = 5000;

/** Reads the state of the database. `database` belongs to the service and is not closed. */
export class PostgresMonitor implements StoreMonitor {
  readonly #database: PostgresDatabase;
  #latest: { at: number; health: Promise<DatabaseHealth> } | undefined;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  pools() {
    return this.#database.pools();
  }

  health(): Promise<DatabaseHealth> {
    const now = performance.now();
    if (!this.#latest || now - this.#latest.at > CACHE_MS)
      this.#latest = { at: now, health: databaseHealth(this.#database) };
    return this.#latest.health;
  }
}

/**
 * Reads the state of the database from the statistics of the server. Sessions of other users are visible only to members
 * of the role `pg_monitor`.
 */
export async function databaseHealth(database: PostgresDatabase): Promise<DatabaseHealth> {
  const { rows: tables } = await database.sql<TableHealth & object>(TABLES, [QUEUE_TABLES]);
  const { rows: sessions } = await database.sql<Sessions & object>(SESSIONS);
  const { rows: standbys } = await database.sql<StandbyHealth & object>(STANDBYS);
  const members = await memberOverview(database);
  const { used, limit, idlePid, idleApplication, idleSeconds, ...rest } = sessions[0]!;
  return {
    ...rest,
    tables,
    standbys,
    connections: { used, limit },
    idleInTransaction:
      idlePid === null
        ? null
        : { pid: idlePid, application: idleApplication ?? '', seconds: idleSeconds ?? 0 },
    feedLag: members.flatMap(({ instance, feedLagMs }) =>
      feedLagMs === null ? [] : [{ member: instance, seconds: feedLagMs / 1000 }],
    ),
  };
}

type Sessions = Pick<
  DatabaseHealth,
  'autovacuum' | 'tablesWithoutAutovacuum' | 'oldestTransactionSeconds' | 'unusedSlots'
> & {
  used: number;
  limit: number;
  idlePid: number | null;
  idleApplication: string | null;
  idleSeconds: number | null;
};

const TABLES = `
  select relname as table, n_live_tup as "liveRows", n_dead_tup as "deadRows",
    pg_table_size(relid) as bytes, pg_indexes_size(relid) as "indexBytes",
    extract(epoch from clock_timestamp() - greatest(last_vacuum, last_autovacuum))::float8 as "vacuumAgeSeconds"
  from pg_stat_user_tables where schemaname = 'svc' and relname = any($1) order by relname`;

const SESSIONS = `
  with idle as (
    select pid, application_name, extract(epoch from clock_timestamp() - state_change)::float8 as seconds
    from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%' order by state_change limit 1
  )
  select current_setting('autovacuum') = 'on' as autovacuum,
    coalesce((select json_agg(relname order by relname) from pg_class
      where relnamespace = 'svc'::regnamespace and relkind = 'r'
        and reloptions && array['autovacuum_enabled=false', 'autovacuum_enabled=off']), '[]')
      as "tablesWithoutAutovacuum",
    coalesce((select max(extract(epoch from clock_timestamp() - xact_start)) from pg_stat_activity
      where pid <> pg_backend_pid() and (backend_xmin is not null or backend_xid is not null)
        and (datname = current_database() or datname is null)), 0)::float8 as "oldestTransactionSeconds",
    (select pid from idle) as "idlePid", (select application_name from idle) as "idleApplication",
    (select seconds from idle) as "idleSeconds",
    (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as used,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as limit,
    coalesce((select json_agg(slot_name order by slot_name) from pg_replication_slots where not active), '[]')
      as "unusedSlots"`;

const STANDBYS = `
  select application_name as standby, coalesce(sync_state, 'unknown') as sync,
    case when pg_is_in_recovery() then null else pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) end as "lagBytes"
  from pg_stat_replication order by application_name, pid`;

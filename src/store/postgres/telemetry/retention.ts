import { codeOf } from '../../../kit/errors/errors.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { days } from '../../../kit/time/duration.ts';
import type { TelemetryLimits } from '../../ports/telemetry.ts';
import { SPANS } from '../../telemetry/event-totals.ts';
import type { PostgresDatabase } from '../database.ts';
import { DATABASE_TIME } from '../database-clock.ts';
import { tryLockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { DAY_MS, type Kind, partitionOf } from './schema.ts';

/** Number of rows deleted per transaction. */
const CHUNK = 2000;
/**
 * Time limit for the lock that removes a partition. Queries that read the table wait behind this lock. If a long query
 * holds the table, the next call tries again.
 */
const LOCK_TIMEOUT_MS = 500;
const LOCK_TIMEOUT_CODE = '55P03';
/** Retention of writers that store nothing more. */
const WRITER_MS = days(1);

/** Retention of the counts of nodes that store nothing more. */
const NODE_MS = days(30);

interface StoredDay {
  kind: Kind;
  day: number;
  rows: number;
  bytes: number;
}

/** Deletes expired and excess records: whole days if possible. One node works at a time. */
export class TelemetryRetention {
  readonly #database: PostgresDatabase;
  readonly #clock: Clock | undefined;

  constructor(database: PostgresDatabase, clock: Clock | undefined) {
    this.#database = database;
    this.#clock = clock;
  }

  async prune(limits: TelemetryLimits): Promise<boolean> {
    const now = await this.#createDays();
    try {
      return await this.#database.transact((sql) => this.#pruneOnce(sql, limits, now));
    } catch (error) {
      if (codeOf(error) === LOCK_TIMEOUT_CODE) return false;
      throw error;
    }
  }

  async #pruneOnce(
    sql: Sql,
    { logsBefore, eventsBefore, maxBytes }: TelemetryLimits,
    now: number,
  ): Promise<boolean> {
    if (!(await tryLockName(sql, 'telemetry retention'))) return false;
    const expired = await sql<StoredDay>(
      `select kind, day from svc.telemetry_day
       where day + ${DAY_MS} <= case kind when 'log' then :logsBefore::bigint else :eventsBefore::bigint end
         and day < :now::bigint - ${DAY_MS} order by day, kind desc limit 1`,
      { logsBefore: Math.ceil(logsBefore), eventsBefore: Math.ceil(eventsBefore), now },
    );
    if (expired[0]) return dropDay(sql, expired[0]);
    if (await deleteSums(sql, { logsBefore, eventsBefore, now })) return true;
    return this.#freeSpace(sql, maxBytes, now);
  }

  /** Creates the partitions of the next days. Returns the current time in epoch ms. */
  #createDays(): Promise<number> {
    return this.#database.transact(async (sql) => {
      await lockPosition(sql);
      const [row] = await sql<{ now: number }>(
        `select now, svc.create_telemetry_days(now) from (select coalesce(:now::bigint, ${DATABASE_TIME}) as now) as t`,
        { now: this.#clock?.now() ?? null },
      );
      return row!.now;
    });
  }

  async #freeSpace(sql: Sql, maxBytes: number, now: number): Promise<boolean> {
    const stored = await sql<StoredDay>(
      `select kind, day, rows, coalesce(rows * row_bytes, pg_total_relation_size(
         ('svc.' || kind || to_char(to_timestamp(day / 1000) at time zone 'UTC', '_YYYYMMDD'))::regclass)) as bytes
       from svc.telemetry_day where rows > 0 order by kind desc, day`,
    );
    const used = stored.reduce((sum, { bytes }) => sum + bytes, 0);
    const oldest = stored[0];
    if (used <= maxBytes || !oldest) return false;
    const isRecent = oldest.day >= now - (now % DAY_MS) - DAY_MS;
    return isRecent ? deleteOldest(sql, oldest) : dropDay(sql, oldest);
  }
}

/** Keeps writers waiting, which expect that the set of partitions does not change. */
async function lockPosition(sql: Sql): Promise<void> {
  await sql('select from svc.telemetry_position for update');
}

async function dropDay(sql: Sql, { kind, day }: Pick<StoredDay, 'kind' | 'day'>): Promise<boolean> {
  await sql(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await lockPosition(sql);
  await sql(`drop table ${partitionOf(kind, day)}`);
  await sql('delete from svc.telemetry_day where kind = :kind and day = :day', { kind, day });
  return true;
}

/** Deletes the oldest records of a day that still receives records. */
async function deleteOldest(sql: Sql, { kind, day, rows, bytes }: StoredDay): Promise<boolean> {
  const time = kind === 'log' ? 'time' : 'ts';
  const [row] = await sql<{ deleted: number }>(
    `with gone as (
       delete from ${partitionOf(kind, day)} where (${time}, id) in (
         select ${time}, id from ${partitionOf(kind, day)} order by ${time}, id limit ${CHUNK})
       returning 1
     ) select count(*) as deleted from gone`,
  );
  await sql(
    `update svc.telemetry_day set rows = greatest(rows - :deleted::bigint, 0), row_bytes = coalesce(row_bytes, :rowBytes)
     where kind = :kind and day = :day`,
    { deleted: row!.deleted, rowBytes: Math.ceil(bytes / rows), kind, day },
  );
  return row!.deleted > 0;
}

/** Deletes expired counts and writers. Returns whether more may be left. */
async function deleteSums(
  sql: Sql,
  { logsBefore, eventsBefore, now }: Pick<TelemetryLimits, 'logsBefore' | 'eventsBefore'> & { now: number },
): Promise<boolean> {
  let hasMore = false;
  for (const span of SPANS) {
    // A condition on `start + span` could not use the primary key.
    const counts = await sql(
      `delete from svc.event_count where ctid = any(array(
         select ctid from svc.event_count where span = :span and start <= :before::bigint order by start limit ${CHUNK})) returning 1`,
      { span, before: Math.ceil(eventsBefore) - span },
    );
    hasMore ||= counts.length > 0;
  }
  const dropped = await sql(
    `delete from svc.telemetry_dropped where ctid = any(array(
       select ctid from svc.telemetry_dropped where minute < :before::bigint order by minute limit ${CHUNK})) returning 1`,
    { before: Math.ceil(Math.min(logsBefore, eventsBefore)) },
  );
  await sql('delete from svc.permission_use where used_at < :before::bigint', {
    before: Math.ceil(eventsBefore),
  });
  await sql('delete from svc.telemetry_writer where written_at < :before', { before: now - WRITER_MS });
  await sql('delete from svc.telemetry_node_count where counted_at < :before', { before: now - NODE_MS });
  return hasMore || dropped.length > 0;
}

import type { ConcurrencyStrategy, RunRecord } from '../../ports/index.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { runsBySeq } from './run-rows.ts';
import { HOLDS_KEY, LIVE, WAITS_FOR_KEY } from './schema.ts';

/** Result of acquiring a concurrency key: the run can start, is rejected, or waits. */
export interface KeyAcquisition {
  hasRoom: boolean;
  rejected: boolean;
  /** Ids of the runs that are cancelled so that this run can start. */
  supersedes: string[];
}

const OF_KEY = `concurrency_key = :key and ${LIVE}`;

/**
 * Locks a concurrency key until the end of the transaction. Callers must lock the key before a run, because different
 * lock orders could deadlock.
 */
export async function lockKey(sql: Sql, key: string | null): Promise<void> {
  if (key !== null) await lockName(sql, `key ${key}`);
}

/** Locks the concurrency keys of runs in the order of all transactions. Returns these keys. */
export async function lockKeysOf(sql: Sql, seqs: readonly number[]): Promise<string[]> {
  const keys = await sql<{ key: string }>(
    `select key, pg_advisory_xact_lock(hashtextextended('key ' || key, 0)) from (
       select distinct concurrency_key as key from svc.run
       where seq = any(:seqs) and concurrency_key is not null order by 1 offset 0
     ) as ordered`,
    { seqs },
  );
  return keys.map(({ key }) => key);
}

/**
 * Acquires the concurrency key, or applies the run's strategy if the key is occupied. The caller holds the lock of the
 * key.
 */
export async function acquireKey(
  sql: Sql,
  key: string | null,
  limit: number,
  strategy: ConcurrencyStrategy | undefined,
): Promise<KeyAcquisition> {
  if (key === null || (await hasRoom(sql, key, limit)))
    return { hasRoom: true, rejected: false, supersedes: [] };
  return { hasRoom: false, rejected: strategy === 'reject', supersedes: await supersede(sql, key, strategy) };
}

/**
 * Makes queued runs of the concurrency key ready, up to the limit of the key. Returns these runs. The caller must hold
 * the lock of the key.
 */
export async function promoteKey(sql: Sql, key: string | null): Promise<RunRecord[]> {
  if (key === null) return [];
  const promoted = await sql<{ seq: number }>('select seq from svc.promote_key(:key) as seq', { key });
  return runsBySeq(
    sql,
    promoted.map(({ seq }) => seq),
  );
}

async function hasRoom(sql: Sql, key: string, limit: number): Promise<boolean> {
  const [row] = await sql<{ held: number }>(
    `select count(*) as held from svc.run where ${OF_KEY} and ${HOLDS_KEY}`,
    { key },
  );
  return row!.held < limit;
}

async function supersede(
  sql: Sql,
  key: string,
  strategy: ConcurrencyStrategy | undefined,
): Promise<string[]> {
  if (strategy !== 'replace-queued' && strategy !== 'cancel-running') return [];
  const which = strategy === 'cancel-running' ? `(${WAITS_FOR_KEY} or ${HOLDS_KEY})` : WAITS_FOR_KEY;
  // All statements lock runs in this order.
  const rows = await sql<{ id: string }>(
    `with marked as materialized (
       select seq, id from svc.run where ${OF_KEY} and ${which} order by seq desc for update
     ), updated as (
       update svc.run set gives_way = true from marked where run.seq = marked.seq
     )
     select id from marked order by seq desc`,
    { key },
  );
  return rows.map(({ id }) => id);
}

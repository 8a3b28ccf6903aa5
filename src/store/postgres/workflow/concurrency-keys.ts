import type { ConcurrencyStrategy, RunRecord } from '../../ports/index.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { SELECT_RUN } from './run-rows.ts';
import { LIVE } from './schema.ts';

/** Result of acquiring a concurrency key: the run can start, is rejected, or waits. */
export interface KeyAcquisition {
  hasRoom: boolean;
  rejected: boolean;
  /** Ids of the runs that are cancelled so that this run can start. */
  supersedes: string[];
}

const OF_KEY = `concurrency_key = :key and ${LIVE}`;
const HOLDS = `(status <> 'queued' or ready)`;
const WAITS = `status = 'queued' and not ready and reason = 'concurrency'`;

/**
 * Locks a concurrency key until the end of the transaction. Callers must lock the key before a run, because different
 * lock orders could deadlock.
 */
export async function lockKey(sql: Sql, key: string | null): Promise<void> {
  if (key !== null) await lockName(sql, `key ${key}`);
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
  const promoted: RunRecord[] = [];
  while (key !== null) {
    const [run] = await sql<RunRecord>(
      `${SELECT_RUN} where ${OF_KEY} and ${WAITS} and not gives_way order by rank desc, seq limit 1`,
      { key },
    );
    if (!run || !(await hasRoom(sql, key, run.concurrencyLimit ?? 1))) break;
    await sql(`update svc.run set ready = true, reason = 'capacity' where seq = :seq`, { seq: run.seq });
    promoted.push({ ...run, ready: true, reason: 'capacity' });
  }
  return promoted;
}

async function hasRoom(sql: Sql, key: string, limit: number): Promise<boolean> {
  const [row] = await sql<{ held: number }>(
    `select count(*) as held from svc.run where ${OF_KEY} and ${HOLDS}`,
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
  const mark = async (which: string): Promise<string[]> => {
    const rows = await sql<{ id: string }>(
      `update svc.run set gives_way = true where ${OF_KEY} and ${which} returning id`,
      { key },
    );
    return rows.map(({ id }) => id);
  };
  const waiting = await mark(WAITS);
  return strategy === 'cancel-running' ? [...waiting, ...(await mark(HOLDS))] : waiting;
}

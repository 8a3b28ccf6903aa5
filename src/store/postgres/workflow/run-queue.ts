import { UNPAUSED } from '../../pause-conditions.ts';
import type { RunQueue, RunRecord, SuspectLimit } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Sql } from '../named-sql.ts';
import { acquireKey, lockKey } from './concurrency-keys.ts';
import { addEvents, addLogs } from './history-rows.ts';
import { keyOf, SELECT_RUN, wakeRun } from './run-rows.ts';
import { BLAMED, STUCK } from './schema.ts';

/** Limit that no run reaches, so that no run counts as likely to crash the service. */
const NO_SUSPECTS: SuspectLimit = { crashes: 2_000_000_000, killsPerCrash: 1 };
/** SQL for the crash count of a run, including kills. The division rounds down, because both operands are integers. */
export const WEIGHT = 'crashes + kills / :killsPerCrash::integer';
export const IS_READY = `status = 'queued' and ready and fence is null and pause_scope is null`;

/** Queue of runs to claim next. The queries use partial indexes, which contain only the few unfinished runs. */
export function postgresRunQueue(database: PostgresDatabase): RunQueue {
  return {
    tenants: () => database.read((sql) => tenantsWhere(sql, IS_READY)),
    ready: (tenantId, limit, suspects = NO_SUSPECTS) =>
      database.read((sql) =>
        sql<RunRecord>(
          `${SELECT_RUN} where tenant_id = :tenantId and ${IS_READY} and ${WEIGHT} < :crashes
           order by rank desc, seq limit :limit`,
          { tenantId, limit, ...suspects },
        ),
      ),
    due: (now, limit, except = [], suspects = NO_SUSPECTS) =>
      database.read((sql) => dueRuns(sql, { now, limit, ...suspects }, except)),
    nextWake: (after, suspects = { ...NO_SUSPECTS, now: 0 }) =>
      database.read(async (sql) => {
        const [row] = await sql<{ at: number }>(
          `select wake_at as at from svc.run
           where wake_at is not null and wake_at > :after and fence is null and ${UNPAUSED} and (${WEIGHT} < :crashes or wake_at > :now)
           order by wake_at limit 1`,
          { after, ...suspects },
        );
        return row?.at ?? null;
      }),
    nextSuspect: (now, suspects, except = []) =>
      database.read(async (sql) => {
        const [run] = await sql<RunRecord>(
          `${SELECT_RUN}
           where ${BLAMED} and ${WEIGHT} >= :crashes and tenant_id <> all(:except::text[])
             and (${IS_READY} or (wake_at <= :now and fence is null and ${UNPAUSED}))
           order by coalesce(wake_at, 0), rank desc, seq limit 1`,
          { now, except, ...suspects },
        );
        return run;
      }),
    release: (seq, release) => database.transact((sql) => releaseRun(sql, seq, release)),
    wake: (id, at) => database.read((sql) => wakeRun(sql, id, at)),
    async wakeForPlugins(at) {
      await database.read((sql) =>
        sql(`update svc.run set wake_at = :at where ${STUCK} and fence is null and reason = 'plugin'`, {
          at,
        }),
      );
    },
  };
}

/** Returns the tenants of matching runs. Needs one index lookup per tenant instead of a scan. */
export async function tenantsWhere(sql: Sql, condition: string): Promise<string[]> {
  const rows = await sql<{ name: string }>(
    `with recursive tenant (name) as (
       select min(tenant_id) from svc.run where ${condition}
       union all
       select (select min(tenant_id) from svc.run where ${condition} and tenant_id > tenant.name)
       from tenant where name is not null
     )
     select name from tenant where name is not null`,
  );
  return rows.map(({ name }) => name);
}

type Due = SuspectLimit & { now: number; limit: number };

/** Returns due runs, most overdue first. With `except`, returns due runs of all other tenants, grouped by tenant. */
async function dueRuns(sql: Sql, due: Due, except: readonly string[]): Promise<RunRecord[]> {
  const isDue = `wake_at is not null and wake_at <= :now and fence is null and ${UNPAUSED} and ${WEIGHT} < :crashes`;
  if (except.length === 0)
    return sql<RunRecord>(`${SELECT_RUN} where ${isDue} order by wake_at limit :limit`, due);
  const found: RunRecord[] = [];
  for (const tenantId of await tenantsWhere(sql, `wake_at is not null and ${UNPAUSED}`)) {
    if (except.includes(tenantId)) continue;
    const limit = due.limit - found.length;
    const runs = await sql<RunRecord>(
      `${SELECT_RUN} where tenant_id = :tenantId and ${isDue} order by wake_at limit :limit`,
      { ...due, tenantId, limit },
    );
    found.push(...runs);
    if (found.length === due.limit) break;
  }
  return found;
}

/** Makes a scheduled run ready. If the concurrency key of the run is occupied, applies `strategy`. */
async function releaseRun(
  sql: Sql,
  seq: number,
  { at, strategy, refused }: Parameters<RunQueue['release']>[1],
): ReturnType<RunQueue['release']> {
  const key = await keyOf(sql, seq);
  await lockKey(sql, key);
  const [run] = await sql<RunRecord>(`${SELECT_RUN} where seq = :seq for update`, { seq });
  if (run?.status !== 'queued' || run.reason !== 'scheduled' || run.pauseScope !== null) return undefined;
  const { hasRoom, rejected, supersedes } = await acquireKey(sql, key, run.concurrencyLimit ?? 1, strategy);
  if (rejected) {
    const ended = { status: refused.status, error: JSON.stringify(refused.error) };
    await sql(
      `update svc.run set status = :status, wake_at = null, reason = null, error = :error, finished_at = :at
       where seq = :seq`,
      { seq, at, ...ended },
    );
    const { code, message } = refused.error;
    await addEvents(sql, seq, [{ at, type: `run.${ended.status}`, data: { reason: 'concurrency', code } }]);
    await addLogs(sql, seq, [{ at, level: 'error', message }]);
    return { run: { ...run, ...ended, reason: null, wakeAt: null, finishedAt: at }, supersedes };
  }
  const released = { ready: hasRoom, reason: hasRoom ? 'capacity' : 'concurrency' } as const;
  await sql('update svc.run set wake_at = null, ready = :ready, reason = :reason where seq = :seq', {
    seq,
    ...released,
  });
  return { run: { ...run, ...released, wakeAt: null }, supersedes };
}

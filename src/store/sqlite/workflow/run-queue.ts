import type { RunStatus } from '../../../contracts/index.ts';
import { UNPAUSED } from '../../pause-conditions.ts';
import type { RunQueue, SuspectLimit } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { BLAMED, STUCK } from './conditions.ts';
import { RUN_COLUMNS, type RunRow } from './run-rows.ts';
import type { WorkflowTables } from './tables.ts';

/** Crash limit that no run reaches, so that no run is treated as the cause of crashes. */
const NO_SUSPECTS: SuspectLimit = { crashes: Number.MAX_SAFE_INTEGER, killsPerCrash: 1 };
/**
 * SQL expression for the number of crashes of a run. `killsPerCrash` kills count as one crash. Integer division drops
 * the remainder.
 */
const CRASH_COUNT = 'crashes + kills / :killsPerCrash';

/** Queue of runs to execute next. All queries use partial indexes of unfinished runs. */
export function sqliteRunQueue(tables: WorkflowTables): RunQueue {
  const { db, rows } = tables;
  const sql = statements(db);
  return {
    tenants: () => db.read(() => sql.tenants.all()),
    ready: (tenantId, limit, suspects = NO_SUSPECTS) =>
      db.read(() => sql.ready.all({ tenantId, limit, ...suspects }).map(rows.recordOf)),
    due: (now, limit, except = [], suspects = NO_SUSPECTS) =>
      db.read(() => {
        const found =
          except.length === 0
            ? sql.due.all({ now, limit, ...suspects })
            : sql.dueOfOthers.all({ now, limit, except: JSON.stringify(except), ...suspects });
        return found.map(rows.recordOf);
      }),
    nextWake: (after, suspects = { ...NO_SUSPECTS, now: 0 }) =>
      db.read(() => sql.nextWake.get({ after, ...suspects }) ?? null),
    nextSuspect: (now, suspects, except = []) =>
      db.read(() => {
        const row = sql.nextSuspect.get({ now, except: JSON.stringify(except), ...suspects });
        return row && rows.recordOf(row);
      }),
    release: (seq, release) => db.write(() => releaseRun(seq, release, sql, tables)),
    async wake(id, at) {
      await db.write(() => rows.wake(id, at));
      return null;
    },
    async wakeForPlugins(at) {
      await db.write(() => sql.wakeForPlugins.run({ at }));
    },
  };
}

/** Makes a scheduled run ready. If the run's concurrency key is occupied, applies the strategy of the run. */
function releaseRun(
  seq: number,
  { at, strategy, refused }: Parameters<RunQueue['release']>[1],
  sql: ReturnType<typeof statements>,
  { rows, keys }: WorkflowTables,
): Awaited<ReturnType<RunQueue['release']>> {
  const row = sql.bySeq.get({ seq });
  if (row?.status !== 'queued' || row.reason !== 'scheduled' || row.pauseScope !== null) return undefined;
  const { hasRoom, rejected, supersedes } = keys.acquire(
    row.concurrencyKey,
    row.concurrencyLimit ?? 1,
    strategy,
  );
  if (rejected) {
    const ended = { status: refused.status, error: JSON.stringify(refused.error) };
    sql.refuse.run({ seq, at, ...ended });
    const { code, message } = refused.error;
    rows.addEvents(seq, [{ at, type: `run.${ended.status}`, data: { reason: 'concurrency', code } }]);
    rows.addLogs(seq, [{ at, level: 'error', message }]);
    const run = rows.recordOf({ ...row, ...ended, reason: null, wakeAt: null, finishedAt: at });
    return { run, supersedes };
  }
  const released = { ready: hasRoom ? 1 : 0, reason: hasRoom ? 'capacity' : 'concurrency' } as const;
  sql.release.run({ seq, ...released });
  return { run: rows.recordOf({ ...row, ...released, wakeAt: null }), supersedes };
}

/** Returns a CTE of the tenants with matching runs. Needs one index lookup per tenant instead of a scan of all runs. */
function tenantsWhere(condition: string): string {
  return `
    with recursive tenant (name) as (
      select min(tenant_id) from run where ${condition}
      union all
      select (select min(tenant_id) from run where ${condition} and tenant_id > tenant.name) from tenant where name is not null
    )`;
}

function statements(db: Database) {
  const isReady = `status = 'queued' and ready = 1 and pause_scope is null`;
  return {
    tenants: db
      .prepare<[], string>(`${tenantsWhere(isReady)} select name from tenant where name is not null`)
      .pluck(),
    ready: db.prepare<[SuspectLimit & { tenantId: string; limit: number }], RunRow>(`
    select ${RUN_COLUMNS} from run where tenant_id = :tenantId and ${isReady} and ${CRASH_COUNT} < :crashes
    order by rank desc, seq limit :limit`),
    due: db.prepare<[SuspectLimit & { now: number; limit: number }], RunRow>(`
    select ${RUN_COLUMNS} from run where wake_at is not null and wake_at <= :now and ${UNPAUSED} and ${CRASH_COUNT} < :crashes
    order by wake_at limit :limit`),
    // Skips the runs of the tenants in `except`, because these tenants have used their share of the capacity.
    dueOfOthers: db.prepare<[SuspectLimit & { now: number; limit: number; except: string }], RunRow>(`
    ${tenantsWhere(`wake_at is not null and ${UNPAUSED}`)}
    select ${RUN_COLUMNS} from tenant cross join run
    where tenant.name not in (select value from json_each(:except))
      and run.tenant_id = tenant.name and wake_at is not null and wake_at <= :now and ${UNPAUSED} and ${CRASH_COUNT} < :crashes limit :limit`),
    nextWake: db
      .prepare<[SuspectLimit & { after: number; now: number }], number>(`
      select wake_at from run where wake_at is not null and wake_at > :after and ${UNPAUSED} and (${CRASH_COUNT} < :crashes or wake_at > :now)
      order by wake_at limit 1`)
      .pluck(),
    nextSuspect: db.prepare<[SuspectLimit & { now: number; except: string }], RunRow>(`
    select ${RUN_COLUMNS} from run
    where ${BLAMED} and ${CRASH_COUNT} >= :crashes and tenant_id not in (select value from json_each(:except))
      and ${UNPAUSED} and (${isReady} or wake_at <= :now)
    order by coalesce(wake_at, 0), rank desc, seq limit 1`),
    bySeq: db.prepare<[{ seq: number }], RunRow>(`select ${RUN_COLUMNS} from run where seq = :seq`),
    release: db.prepare<[{ seq: number; ready: 0 | 1; reason: string }]>(
      'update run set wake_at = null, ready = :ready, reason = :reason where seq = :seq',
    ),
    refuse: db.prepare<[{ seq: number; at: number; status: RunStatus; error: string }]>(`
    update run set status = :status, wake_at = null, reason = null, error = :error, finished_at = :at where seq = :seq`),
    wakeForPlugins: db.prepare<[{ at: number }]>(
      `update run set wake_at = :at where ${STUCK} and fence is null and reason = 'plugin'`,
    ),
  };
}

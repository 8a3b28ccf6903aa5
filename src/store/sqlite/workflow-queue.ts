import type { RunStatus } from '../../contracts/index.ts';
import type { RunQueue } from '../ports/index.ts';
import type { Database } from './database.ts';
import type { WorkflowKeys } from './workflow-keys.ts';
import { RUN_COLUMNS, type RunRow, type WorkflowRows } from './workflow-rows.ts';
import { PARKED, STUCK } from './workflow-schema.ts';

/** Runs to be claimed next, found by partial indexes over the few unfinished runs. */
export function sqliteRunQueue(db: Database, rows: WorkflowRows, keys: WorkflowKeys): RunQueue {
  const isReady = `status = 'queued' and ready = 1`;
  const tenants = db
    .prepare<[], string>(`${tenantsWhere(isReady)} select name from tenant where name is not null`)
    .pluck();
  const ready = db.prepare<[{ tenantId: string; limit: number }], RunRow>(
    `select ${RUN_COLUMNS} from run where tenant_id = :tenantId and ${isReady} order by rank desc, seq limit :limit`,
  );
  const due = db.prepare<[{ now: number; limit: number }], RunRow>(
    `select ${RUN_COLUMNS} from run where wake_at is not null and wake_at <= :now order by wake_at limit :limit`,
  );
  // Skips whole tenants that have used their share, without reading their runs.
  const dueOfOthers = db.prepare<[{ now: number; limit: number; except: string }], RunRow>(`
    ${tenantsWhere('wake_at is not null')}
    select ${RUN_COLUMNS} from tenant cross join run
    where tenant.name not in (select value from json_each(:except))
      and run.tenant_id = tenant.name and wake_at is not null and wake_at <= :now limit :limit`);
  const nextWake = db
    .prepare<[{ after: number }], number | null>(
      'select min(wake_at) from run where wake_at is not null and wake_at > :after',
    )
    .pluck();
  const bySeq = db.prepare<[{ seq: number }], RunRow>(`select ${RUN_COLUMNS} from run where seq = :seq`);
  const release = db.prepare<[{ seq: number; ready: 0 | 1; reason: string }]>(
    'update run set wake_at = null, ready = :ready, reason = :reason where seq = :seq',
  );
  const refuse = db.prepare<[{ seq: number; at: number; status: RunStatus; error: string }]>(`
    update run set status = :status, wake_at = null, reason = null, error = :error, finished_at = :at where seq = :seq`);
  const wake = db.prepare<[{ id: string; at: number }]>(
    `update run set wake_at = :at where id = :id and ${PARKED}`,
  );
  const wakeForPlugins = db.prepare<[{ at: number }]>(
    `update run set wake_at = :at where ${STUCK} and fence is null and reason = 'plugin'`,
  );
  return {
    tenants: () => db.read(() => tenants.all()),
    ready: (tenantId, limit) => db.read(() => ready.all({ tenantId, limit }).map(rows.recordOf)),
    due: (now, limit, except = []) =>
      db.read(() => {
        const found =
          except.length === 0
            ? due.all({ now, limit })
            : dueOfOthers.all({ now, limit, except: JSON.stringify(except) });
        return found.map(rows.recordOf);
      }),
    nextWake: (after) => db.read(() => nextWake.get({ after }) ?? null),
    release: (seq, { at, strategy, refused }) =>
      db.write(() => {
        const row = bySeq.get({ seq });
        if (row?.status !== 'queued' || row.reason !== 'scheduled') return undefined;
        const { hasRoom, rejected, supersedes } = keys.arrive(
          row.concurrencyKey,
          row.concurrencyLimit ?? 1,
          strategy,
        );
        if (rejected) {
          const ended = { status: refused.status, error: JSON.stringify(refused.error) };
          refuse.run({ seq, at, ...ended });
          const { code, message } = refused.error;
          rows.addEvents(seq, [{ at, type: `run.${ended.status}`, data: { reason: 'concurrency', code } }]);
          rows.addLogs(seq, [{ at, level: 'error', message }]);
          const run = rows.recordOf({ ...row, ...ended, reason: null, wakeAt: null, finishedAt: at });
          return { run, supersedes };
        }
        const released = { ready: hasRoom ? 1 : 0, reason: hasRoom ? 'capacity' : 'concurrency' } as const;
        release.run({ seq, ...released });
        return { run: rows.recordOf({ ...row, ...released, wakeAt: null }), supersedes };
      }),
    async wake(id, at) {
      await db.write(() => wake.run({ id, at }));
    },
    async wakeForPlugins(at) {
      await db.write(() => wakeForPlugins.run({ at }));
    },
  };
}

/** CTE with the tenants of matching runs: one index seek per tenant instead of a scan. */
function tenantsWhere(condition: string): string {
  return `
    with recursive tenant (name) as (
      select min(tenant_id) from run where ${condition}
      union all
      select (select min(tenant_id) from run where ${condition} and tenant_id > tenant.name) from tenant where name is not null
    )`;
}

import type { PausedWorkflow, PauseStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE, UNPAUSED, WAITS_FOR_KEY } from './conditions.ts';
import type { WorkflowTables } from './tables.ts';

/**
 * Adds pauses of runs and workflows. `pause_scope`: whether the run or its workflow was paused. The indexes of runs to
 * claim leave out paused runs, of which there may be many.
 */
export const PAUSES = `
  alter table run add column paused_at integer;
  alter table run add column pause_scope text;
  create table paused_workflow (
    tenant_id text not null,
    workflow_id text not null,
    paused_at integer not null,
    paused_by text not null,
    primary key (tenant_id, workflow_id)
  ) strict, without rowid;
  drop index run_ready;
  drop index run_wake;
  drop index run_wake_tenant;
  create index run_ready on run (tenant_id, rank desc, seq) where status = 'queued' and ready = 1 and paused_at is null;
  create index run_wake on run (wake_at) where wake_at is not null and ${UNPAUSED};
  create index run_wake_tenant on run (tenant_id, wake_at) where wake_at is not null and ${UNPAUSED};`;

/**
 * Assignments that end a pause. A run that waited for its concurrency key becomes due, and then acquires the key like a
 * planned run. The times of their creation keep such runs in order.
 */
const UNPAUSE = `paused_at = null, pause_scope = null, wake_at = iif(${WAITS_FOR_KEY}, created_at, wake_at),
  reason = iif(${WAITS_FOR_KEY}, 'scheduled', reason)`;

const PAUSABLE = new Set(['queued', 'running', 'waiting', 'interrupted']);

export function sqlitePauses({ db, rows }: WorkflowTables): PauseStore {
  const sql = statements(db);
  return {
    pauseRun: (seq, at) =>
      db.write(() => {
        const holder = rows.holder(seq);
        if (!holder || !PAUSABLE.has(holder.status)) return undefined;
        if (sql.pauseRun.run({ seq, at }).changes > 0) rows.addEvents(seq, [{ at, type: 'run.paused' }]);
        return { owner: holder.fence };
      }),
    resumeRun: (seq, at) =>
      db.write(() => {
        if (sql.resumeRun.run({ seq }).changes === 0) return undefined;
        rows.addEvents(seq, [{ at, type: 'run.unpaused' }]);
        return { owner: rows.holder(seq)!.fence };
      }),
    async pauseWorkflow(pause) {
      await db.write(() => {
        sql.pauseWorkflow.run(pause);
        sql.pauseQueued.run(pause);
      });
    },
    async resumeWorkflow(tenantId, workflowId) {
      await db.write(() => {
        sql.resumeWorkflow.run({ tenantId, workflowId });
        sql.resumeQueued.run({ tenantId, workflowId });
      });
    },
    pausedWorkflows: (tenantId) => db.read(() => sql.pausedWorkflows.all({ tenantId })),
  };
}

function statements(db: Database) {
  type OfWorkflow = { tenantId: string; workflowId: string };
  const ofWorkflow = 'tenant_id = :tenantId and workflow_id = :workflowId';
  return {
    pauseRun: db.prepare<[{ seq: number; at: number }]>(
      `update run set paused_at = coalesce(paused_at, :at), pause_scope = 'run' where seq = :seq and pause_scope is not 'run'`,
    ),
    resumeRun: db.prepare<[{ seq: number }]>(
      `update run set ${UNPAUSE} where seq = :seq and paused_at is not null and ${LIVE}`,
    ),
    pauseWorkflow: db.prepare<[PausedWorkflow]>(`
      insert into paused_workflow (tenant_id, workflow_id, paused_at, paused_by)
      values (:tenantId, :workflowId, :pausedAt, :pausedBy) on conflict do nothing`),
    // Without `indexed by`, SQLite reads the ended runs of the workflow, too.
    pauseQueued: db.prepare<[PausedWorkflow]>(`
      update run indexed by run_live set paused_at = :pausedAt, pause_scope = 'workflow'
      where ${LIVE} and ${ofWorkflow} and status = 'queued' and started_at is null and paused_at is null`),
    resumeWorkflow: db.prepare<[OfWorkflow]>(`delete from paused_workflow where ${ofWorkflow}`),
    resumeQueued: db.prepare<[OfWorkflow]>(`
      update run indexed by run_live set ${UNPAUSE}
      where ${LIVE} and ${ofWorkflow} and pause_scope = 'workflow'`),
    pausedWorkflows: db
      .prepare<[{ tenantId: string }], string>(
        'select workflow_id from paused_workflow where tenant_id = :tenantId order by 1',
      )
      .pluck(),
  };
}

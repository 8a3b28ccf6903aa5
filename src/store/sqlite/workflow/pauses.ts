import type { PauseStore, TenantWorkflow } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE, UNPAUSED, WAITS_FOR_KEY } from './conditions.ts';
import type { WorkflowTables } from './tables.ts';

/**
 * Adds pauses of runs and workflows. `pause_scope`: whether the run or its workflow was paused. The indexes of runs to
 * claim leave out paused runs, of which there may be many.
 */
export const PAUSES = `
  alter table run add column pause_scope text;
  create table paused_workflow (
    tenant_id text not null,
    workflow_id text not null,
    primary key (tenant_id, workflow_id)
  ) strict, without rowid;
  drop index run_ready;
  drop index run_wake;
  drop index run_wake_tenant;
  create index run_ready on run (tenant_id, rank desc, seq) where status = 'queued' and ready = 1 and pause_scope is null;
  create index run_wake on run (wake_at) where wake_at is not null and ${UNPAUSED};
  create index run_wake_tenant on run (tenant_id, wake_at) where wake_at is not null and ${UNPAUSED};`;

/**
 * Assignments that end a pause. A run that waited for its concurrency key becomes due, and then acquires the key like a
 * planned run. The times of their creation keep such runs in order.
 */
const UNPAUSE = `pause_scope = null, wake_at = iif(${WAITS_FOR_KEY}, created_at, wake_at),
  reason = iif(${WAITS_FOR_KEY}, 'scheduled', reason)`;

const PAUSABLE = new Set(['queued', 'running', 'waiting', 'interrupted']);

export function sqlitePauses({ db, rows }: WorkflowTables): PauseStore {
  const sql = statements(db);
  return {
    pauseRun: (seq, at) =>
      db.write(() => {
        const holder = rows.holder(seq);
        if (!holder || !PAUSABLE.has(holder.status)) return undefined;
        if (sql.pauseRun.run({ seq }).changes > 0) rows.addEvents(seq, [{ at, type: 'run.paused' }]);
        return { owner: holder.fence };
      }),
    resumeRun: (seq, at) =>
      db.write(() => {
        if (sql.resumeRun.run({ seq }).changes === 0) return undefined;
        rows.addEvents(seq, [{ at, type: 'run.unpaused' }]);
        return { owner: rows.holder(seq)!.fence };
      }),
    async pauseWorkflow(workflow) {
      await db.write(() => {
        sql.pauseWorkflow.run(workflow);
        sql.pauseQueued.run(workflow);
      });
    },
    async resumeWorkflow(workflow) {
      await db.write(() => {
        sql.resumeWorkflow.run(workflow);
        sql.resumeQueued.run(workflow);
      });
    },
    pausedWorkflows: (tenantId) => db.read(() => sql.pausedWorkflows.all({ tenantId })),
  };
}

function statements(db: Database) {
  const ofWorkflow = 'tenant_id = :tenantId and workflow_id = :workflowId';
  return {
    pauseRun: db.prepare<[{ seq: number }]>(
      `update run set pause_scope = 'run' where seq = :seq and pause_scope is not 'run'`,
    ),
    resumeRun: db.prepare<[{ seq: number }]>(
      `update run set ${UNPAUSE} where seq = :seq and pause_scope is not null and ${LIVE}`,
    ),
    pauseWorkflow: db.prepare<[TenantWorkflow]>(`
      insert into paused_workflow (tenant_id, workflow_id)
      values (:tenantId, :workflowId) on conflict do nothing`),
    // Without `indexed by`, SQLite reads the ended runs of the workflow, too.
    pauseQueued: db.prepare<[TenantWorkflow]>(`
      update run indexed by run_live set pause_scope = 'workflow'
      where ${LIVE} and ${ofWorkflow} and status = 'queued' and started_at is null and pause_scope is null`),
    resumeWorkflow: db.prepare<[TenantWorkflow]>(`delete from paused_workflow where ${ofWorkflow}`),
    resumeQueued: db.prepare<[TenantWorkflow]>(`
      update run indexed by run_live set ${UNPAUSE}
      where ${LIVE} and ${ofWorkflow} and pause_scope = 'workflow'`),
    pausedWorkflows: db
      .prepare<[{ tenantId: string }], string>(
        'select workflow_id from paused_workflow where tenant_id = :tenantId order by 1',
      )
      .pluck(),
  };
}

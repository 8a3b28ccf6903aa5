import { PAUSABLE, UNPAUSED } from '../../pause-conditions.ts';
import type { PauseStore, TenantWorkflow } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE } from './conditions.ts';
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

export function sqlitePauses({ db, rows, keys }: WorkflowTables): PauseStore {
  const sql = statements(db);
  return {
    pauseRun: (seq, at) =>
      db.write(() => {
        const run = sql.pausable.get({ seq });
        if (!run) return undefined;
        if (sql.pauseRun.run({ seq }).changes > 0) rows.addEvents(seq, [{ at, type: 'run.paused' }]);
        return run;
      }),
    resumeRun: (seq, at) =>
      db.write(() => {
        const resumed = sql.resumeRun.get({ seq });
        if (!resumed) return undefined;
        rows.addEvents(seq, [{ at, type: 'run.unpaused' }]);
        keys.promote(resumed.key);
        return { owner: resumed.owner };
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
        for (const key of new Set(sql.resumeQueued.all(workflow))) keys.promote(key);
      });
    },
    pausedWorkflows: (tenantId) => db.read(() => sql.pausedWorkflows.all({ tenantId })),
  };
}

function statements(db: Database) {
  const ofWorkflow = 'tenant_id = :tenantId and workflow_id = :workflowId';
  return {
    pausable: db.prepare<[{ seq: number }], { owner: number | null }>(
      `select fence as owner from run where seq = :seq and ${PAUSABLE}`,
    ),
    pauseRun: db.prepare<[{ seq: number }]>(
      `update run set pause_scope = 'run' where seq = :seq and pause_scope is not 'run'`,
    ),
    resumeRun: db.prepare<[{ seq: number }], { owner: number | null; key: string | null }>(
      `update run set pause_scope = null where seq = :seq and pause_scope is not null and ${LIVE}
       returning fence as owner, concurrency_key as key`,
    ),
    pauseWorkflow: db.prepare<[TenantWorkflow]>(`
      insert into paused_workflow (tenant_id, workflow_id)
      values (:tenantId, :workflowId) on conflict do nothing`),
    // Without `indexed by`, SQLite reads the ended runs of the workflow, too.
    pauseQueued: db.prepare<[TenantWorkflow]>(`
      update run indexed by run_live set pause_scope = 'workflow'
      where ${LIVE} and ${ofWorkflow} and status = 'queued' and started_at is null and pause_scope is null`),
    resumeWorkflow: db.prepare<[TenantWorkflow]>(`delete from paused_workflow where ${ofWorkflow}`),
    resumeQueued: db
      .prepare<[TenantWorkflow], string | null>(`
      update run indexed by run_live set pause_scope = null
      where ${LIVE} and ${ofWorkflow} and pause_scope = 'workflow' returning concurrency_key`)
      .pluck(),
    pausedWorkflows: db
      .prepare<[{ tenantId: string }], string>(
        'select workflow_id from paused_workflow where tenant_id = :tenantId order by 1',
      )
      .pluck(),
  };
}

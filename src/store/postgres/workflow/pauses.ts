import type { PausedWorkflow, PauseStore } from '../../ports/index.ts';
import type { ConcurrentIndex } from '../concurrent-index.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Sql } from '../named-sql.ts';
import { addEvents } from './history-rows.ts';
import { lockRun } from './run-rows.ts';
import { LIVE, UNPAUSED } from './schema.ts';

/** Adds pauses of runs and workflows. `pause_scope`: whether the run or its workflow was paused. */
export const PAUSES = `
  create table svc.paused_workflow (
    tenant_id text collate "C" not null,
    workflow_id text collate "C" not null,
    paused_at bigint not null,
    paused_by text not null,
    primary key (tenant_id, workflow_id)
  );
  alter table svc.run add column paused_at bigint, add column pause_scope text;`;

/**
 * Indexes of the runs that may be claimed. They leave out paused runs, of which there may be many. During a rolling
 * upgrade, nodes of earlier releases claim by `run_ready`, `run_planned`, `run_wake` and `run_wake_tenant`. The next
 * release drops these indexes.
 */
export const CLAIM_INDEXES: readonly ConcurrentIndex[] = [
  {
    ...{ name: 'run_claim_ready', table: 'run', columns: 'tenant_id, rank desc, seq' },
    where: `status = 'queued' and ready and paused_at is null`,
  },
  {
    ...{ name: 'run_claim_planned', table: 'run', columns: 'wake_at' },
    where: `wake_at is not null and status = 'queued' and paused_at is null`,
  },
  ...[
    { name: 'run_claim_due', columns: 'wake_at' },
    { name: 'run_claim_due_tenant', columns: 'tenant_id, wake_at' },
  ].map((index) => ({ ...index, table: 'run', where: `wake_at is not null and ${UNPAUSED}` })),
];

const PAUSABLE = new Set(['queued', 'running', 'waiting', 'interrupted']);
const OF_WORKFLOW = `${LIVE} and tenant_id = :tenantId and workflow_id = :workflowId`;

export function postgresPauses(database: PostgresDatabase): PauseStore {
  return {
    pauseRun: (seq, at) =>
      database.transact(async (sql) => {
        const holder = await lockRun(sql, seq);
        if (!holder || !PAUSABLE.has(holder.status)) return undefined;
        const paused = await sql(
          `update svc.run set paused_at = coalesce(paused_at, :at), pause_scope = 'run'
           where seq = :seq and pause_scope is distinct from 'run' returning seq`,
          { seq, at },
        );
        if (paused.length > 0) await addEvents(sql, seq, [{ at, type: 'run.paused' }]);
        return { owner: holder.fence };
      }),
    resumeRun: (seq, at) =>
      database.transact(async (sql) => {
        const [resumed] = await sql<{ owner: number | null }>(
          `update svc.run set paused_at = null, pause_scope = null
           where seq = :seq and paused_at is not null and ${LIVE} returning fence as owner`,
          { seq },
        );
        if (resumed) await addEvents(sql, seq, [{ at, type: 'run.unpaused' }]);
        return resumed;
      }),
    async pauseWorkflow(pause) {
      await database.transact(async (sql) => {
        await sql(
          `insert into svc.paused_workflow (tenant_id, workflow_id, paused_at, paused_by)
           values (:tenantId, :workflowId, :pausedAt, :pausedBy) on conflict do nothing`,
          pause,
        );
        await pauseQueued(sql, pause);
      });
      // Finds runs whose start was in progress and did not see the pause.
      await database.read((sql) => pauseQueued(sql, pause));
    },
    resumeWorkflow: (tenantId, workflowId) =>
      database.transact(async (sql) => {
        // Waits for starts that have seen the pause: they hold a lock of its row.
        await sql(
          'delete from svc.paused_workflow where tenant_id = :tenantId and workflow_id = :workflowId',
          { tenantId, workflowId },
        );
        await sql(
          `update svc.run set paused_at = null, pause_scope = null where ${OF_WORKFLOW} and pause_scope = 'workflow'`,
          { tenantId, workflowId },
        );
      }),
    pausedWorkflows: (tenantId) =>
      database.read(async (sql) => {
        const rows = await sql<{ id: string }>(
          'select workflow_id as id from svc.paused_workflow where tenant_id = :tenantId order by 1',
          { tenantId },
        );
        return rows.map(({ id }) => id);
      }),
  };
}

async function pauseQueued(sql: Sql, { tenantId, workflowId, pausedAt }: PausedWorkflow): Promise<void> {
  await sql(
    `update svc.run set paused_at = :pausedAt, pause_scope = 'workflow'
     where ${OF_WORKFLOW} and status = 'queued' and started_at is null and fence is null and paused_at is null`,
    { tenantId, workflowId, pausedAt },
  );
}

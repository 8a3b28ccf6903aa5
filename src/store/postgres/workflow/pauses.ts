import { PAUSABLE, UNPAUSED } from '../../pause-conditions.ts';
import type { PauseStore, TenantWorkflow } from '../../ports/index.ts';
import type { ConcurrentIndex } from '../concurrent-index.ts';
import type { PostgresDatabase } from '../database.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { lockKey, lockKeysOf, promoteKey } from './concurrency-keys.ts';
import { addEvents } from './history-rows.ts';
import { keyOf } from './run-rows.ts';
import { LIVE } from './schema.ts';
import { PAUSE_WRITE_FUNCTIONS } from './write-functions.ts';

/**
 * Adds pauses of runs and workflows. `pause_scope`: whether the run or its workflow was paused. Starts share the lock of
 * `is_workflow_paused` until they commit, so a pause or resume that holds the lock sees all runs of former starts. The
 * function is volatile, so it reads the pause as of when it has the lock.
 */
export const PAUSES = `
  create table svc.paused_workflow (
    tenant_id text collate "C" not null,
    workflow_id text collate "C" not null,
    primary key (tenant_id, workflow_id)
  );
  create function svc.is_workflow_paused(tenant text, workflow text) returns boolean language plpgsql volatile as $$
  begin
    perform pg_advisory_xact_lock_shared(hashtextextended('pause ' || tenant || E'\\n' || workflow, 0));
    return exists (select from svc.paused_workflow where tenant_id = tenant and workflow_id = workflow);
  end $$;
  alter table svc.run add column pause_scope text;
  ${PAUSE_WRITE_FUNCTIONS}`;

/**
 * Indexes of the runs that may be claimed. They leave out paused runs, of which there may be many. During a rolling
 * upgrade, nodes of earlier releases claim by `run_ready`, `run_planned`, `run_wake` and `run_wake_tenant`. The next
 * release drops these indexes.
 */
export const CLAIM_INDEXES: readonly ConcurrentIndex[] = [
  {
    ...{ name: 'run_claim_ready', table: 'run', columns: 'tenant_id, rank desc, seq' },
    where: `status = 'queued' and ready and pause_scope is null`,
  },
  {
    ...{ name: 'run_claim_planned', table: 'run', columns: 'wake_at' },
    where: `wake_at is not null and status = 'queued' and pause_scope is null`,
  },
  ...[
    { name: 'run_claim_due', columns: 'wake_at' },
    { name: 'run_claim_due_tenant', columns: 'tenant_id, wake_at' },
  ].map((index) => ({ ...index, table: 'run', where: `wake_at is not null and ${UNPAUSED}` })),
];

const OF_WORKFLOW = `${LIVE} and tenant_id = :tenantId and workflow_id = :workflowId`;
/**
 * Runs that one transaction pauses or resumes. Limits how long their owners wait for its locks, and how many keys it
 * locks.
 */
const BATCH = 500;

export function postgresPauses(database: PostgresDatabase): PauseStore {
  return {
    pauseRun: (seq, at) =>
      database.transact(async (sql) => {
        const [run] = await sql<{ owner: number | null }>(
          `select fence as owner from svc.run where seq = :seq and ${PAUSABLE} for update`,
          { seq },
        );
        if (!run) return undefined;
        const paused = await sql(
          `update svc.run set pause_scope = 'run'
           where seq = :seq and pause_scope is distinct from 'run' returning seq`,
          { seq },
        );
        if (paused.length > 0) await addEvents(sql, seq, [{ at, type: 'run.paused' }]);
        return run;
      }),
    resumeRun: (seq, at) =>
      database.transact(async (sql) => {
        const key = await keyOf(sql, seq);
        await lockKey(sql, key);
        const [resumed] = await sql<{ owner: number | null }>(
          `update svc.run set pause_scope = null
           where seq = :seq and pause_scope is not null and ${LIVE} returning fence as owner`,
          { seq },
        );
        if (!resumed) return undefined;
        await addEvents(sql, seq, [{ at, type: 'run.unpaused' }]);
        await promoteKey(sql, key);
        return resumed;
      }),
    async pauseWorkflow(workflow) {
      await database.transact(async (sql) => {
        await lockPause(sql, workflow);
        await sql(
          `insert into svc.paused_workflow (tenant_id, workflow_id)
           values (:tenantId, :workflowId) on conflict do nothing`,
          workflow,
        );
      });
      let first: number | undefined = Number.MAX_SAFE_INTEGER;
      while (first !== undefined) first = await pauseQueued(database, workflow, first);
    },
    async resumeWorkflow(workflow) {
      await database.transact(async (sql) => {
        await lockPause(sql, workflow);
        await sql(
          'delete from svc.paused_workflow where tenant_id = :tenantId and workflow_id = :workflowId',
          workflow,
        );
      });
      // If this is interrupted, the caller can resume the workflow again.
      let last: number | undefined = 0;
      while (last !== undefined) last = await resumeQueued(database, workflow, last);
    },
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

/** Returns whether a workflow is paused, which does not change until the transaction ends. */
export async function isWorkflowPaused(sql: Sql, workflow: TenantWorkflow): Promise<boolean> {
  const [row] = await sql<{ isPaused: boolean }>(
    'select svc.is_workflow_paused(:tenantId, :workflowId) as "isPaused"',
    workflow,
  );
  return row!.isPaused;
}

/** Waits for starts of the workflow, and delays further ones until the transaction ends. */
async function lockPause(sql: Sql, { tenantId, workflowId }: TenantWorkflow): Promise<void> {
  await lockName(sql, `pause ${tenantId}\n${workflowId}`);
}

/**
 * Pauses the next runs that have not begun, newest first, if the workflow is still paused. Returns the first of these runs,
 * or undefined if there are no more.
 */
async function pauseQueued(
  database: PostgresDatabase,
  workflow: TenantWorkflow,
  before: number,
): Promise<number | undefined> {
  const [paused] = await database.write((sql) =>
    sql<{ first: number | null }>(
      `with pause as materialized (
       select from svc.paused_workflow where tenant_id = :tenantId and workflow_id = :workflowId for key share
     ), picked as materialized (
       select seq from svc.run
       where ${OF_WORKFLOW} and status = 'queued' and started_at is null and pause_scope is null and seq < :before
         and exists (select from pause)
       order by seq desc limit ${BATCH} for update
     ), paused as (
       update svc.run set pause_scope = 'workflow' from picked where run.seq = picked.seq returning run.seq
     )
     select min(seq) as first from paused`,
      { ...workflow, before },
    ),
  );
  return paused!.first ?? undefined;
}

/**
 * Resumes the next runs that the workflow paused, and lets them acquire their concurrency keys, oldest first. Returns the
 * last of these runs, or undefined if there are no more.
 */
async function resumeQueued(
  database: PostgresDatabase,
  workflow: TenantWorkflow,
  after: number,
): Promise<number | undefined> {
  const picked = await database.read((sql) =>
    sql<{ seq: number }>(
      `select seq from svc.run where ${OF_WORKFLOW} and pause_scope = 'workflow' and seq > :after
       order by seq limit ${BATCH}`,
      { ...workflow, after },
    ),
  );
  const seqs = picked.map(({ seq }) => seq);
  if (seqs.length > 0) await database.transact((sql) => resumeRuns(sql, workflow, seqs));
  return seqs.at(-1);
}

/** Locks keys before the pause, like starts, and the pause before the runs. */
async function resumeRuns(sql: Sql, workflow: TenantWorkflow, seqs: readonly number[]): Promise<void> {
  const keys = await lockKeysOf(sql, seqs);
  // The workflow may have been paused again.
  if (await isWorkflowPaused(sql, workflow)) return;
  await sql(
    `with picked as materialized (
       select seq from svc.run where seq = any(:seqs) and pause_scope = 'workflow' order by seq desc for update
     )
     update svc.run set pause_scope = null from picked where run.seq = picked.seq`,
    { seqs },
  );
  await sql('select svc.promote_key(key) from unnest(:keys::text[]) as key', { keys });
}

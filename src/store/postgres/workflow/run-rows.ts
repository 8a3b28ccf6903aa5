import type { RunRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { PARKED } from './schema.ts';

export const RUN_COLUMNS = `seq, id, kind, tenant_id as "tenantId", workflow_id as "workflowId",
  definition_hash as "definitionHash", status, ready, reason, rank, priority, run_at as "runAt", wake_at as "wakeAt",
  deadline_at as "deadlineAt", concurrency_key as "concurrencyKey", concurrency_limit as "concurrencyLimit", fence,
  resume_count as "resumeCount", crashes, kills, in_flight as "inFlight", trigger_kind as trigger,
  parent_id as "parentId", parent_step as "parentStep", rerun_of as "rerunOf", depth, host_id as "hostId",
  request_id as "requestId", trace_id as "traceId", delivery_id as "deliveryId", parent_span as "parentSpanId", created_at as "createdAt",
  started_at as "startedAt", finished_at as "finishedAt", ending, ending_at as "endingAt",
  ending_held_at as "endingHeldAt", pause_scope as "pauseScope", labels, end_tasks as "endTasks", handles,
  handler_depth as "handlerDepth", input, output, error`;

export const SELECT_RUN = `select ${RUN_COLUMNS} from svc.run`;

export const FINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timed_out', 'cancelled']);

export async function runsBySeq(sql: Sql, seqs: readonly number[]): Promise<RunRecord[]> {
  return seqs.length === 0 ? [] : sql<RunRecord>(`${SELECT_RUN} where seq = any(:seqs)`, { seqs });
}

/** Columns that decide which process is allowed to change a run. */
export interface Holder {
  status: string;
  fence: number | null;
}

/** Locks the run's row until the transaction ends. Returns the run's status and the fence token of its owner. */
export async function lockRun(sql: Sql, seq: number): Promise<Holder | undefined> {
  const [holder] = await sql<Holder>('select status, fence from svc.run where seq = :seq for update', {
    seq,
  });
  return holder;
}

/** Returns the run's concurrency key. The key never changes, so no lock is needed to read the key. */
export async function keyOf(sql: Sql, seq: number): Promise<string | null> {
  const [row] = await sql<{ key: string | null }>(
    'select concurrency_key as key from svc.run where seq = :seq',
    { seq },
  );
  return row?.key ?? null;
}

/**
 * Sets the wake time of a waiting run without an owner. The owner of another run gets a notice, unless the owner is
 * `by`. Returns the fence of the owner.
 */
export async function wakeRun(
  sql: Sql,
  id: string,
  at: number,
  by: number | null = null,
): Promise<number | null> {
  const [run] = await sql<{ fence: number | null }>(
    `update svc.run set wake_at = case when fence is null then :at::bigint else wake_at end,
       notices = notices + (fence is not null)::integer
     where id = :id and (${PARKED} or (fence is not null and fence is distinct from :by::bigint))
     returning fence`,
    { id, at, by },
  );
  return run?.fence ?? null;
}

import type { RunProgress, RunRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { PARKED } from './schema.ts';

export const RUN_COLUMNS = `seq, id, kind, tenant_id as "tenantId", workflow_id as "workflowId",
  definition_hash as "definitionHash", status, ready, reason, rank, priority, run_at as "runAt", wake_at as "wakeAt",
  deadline_at as "deadlineAt", concurrency_key as "concurrencyKey", concurrency_limit as "concurrencyLimit", fence,
  resume_count as "resumeCount", crashes, kills, in_flight as "inFlight", trigger_kind as trigger,
  parent_id as "parentId", parent_step as "parentStep", rerun_of as "rerunOf", depth, host_id as "hostId",
  request_id as "requestId", trace_id as "traceId", parent_span as "parentSpanId", created_at as "createdAt",
  started_at as "startedAt", finished_at as "finishedAt", ending, ending_at as "endingAt",
  ending_held_at as "endingHeldAt", input, output, error`;

export const SELECT_RUN = `select ${RUN_COLUMNS} from svc.run`;

export const FINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timed_out', 'cancelled']);

/** Inserts a run. Returns the run with its generated sequence number (`seq`). */
export async function insertRun(sql: Sql, run: Omit<RunRecord, 'seq'>): Promise<RunRecord> {
  const [row] = await sql<{ seq: number }>(
    `insert into svc.run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, reason, rank, priority, run_at,
       wake_at, deadline_at, concurrency_key, concurrency_limit, fence, resume_count, crashes, kills, in_flight,
       trigger_kind, parent_id, parent_step, rerun_of, depth, host_id, request_id, trace_id, parent_span, created_at,
       started_at, finished_at, input, output, error)
     values (:id, :kind, :tenantId, :workflowId, :definitionHash, :status, :ready, :reason, :rank, :priority, :runAt,
       :wakeAt, :deadlineAt, :concurrencyKey, :concurrencyLimit, :fence, :resumeCount, :crashes, :kills, :inFlight,
       :trigger, :parentId, :parentStep, :rerunOf, :depth, :hostId, :requestId, :traceId, :parentSpanId, :createdAt,
       :startedAt, :finishedAt, :input, :output, :error)
     returning seq`,
    run,
  );
  return { ...run, seq: row!.seq };
}

/**
 * Stores the progress of a run. The owner only resets the counts of crashes and kills. Otherwise they stay, because
 * another process may have changed them meanwhile.
 */
export async function putProgress(sql: Sql, seq: number, run: RunProgress): Promise<void> {
  await sql(
    `update svc.run set status = :status, ready = :ready, reason = :reason, rank = :rank, wake_at = :wakeAt,
       deadline_at = :deadlineAt, fence = :fence, resume_count = :resumeCount,
       crashes = case when :crashes::integer + :kills::integer = 0 then 0 else crashes end,
       kills = case when :crashes::integer + :kills::integer = 0 then 0 else kills end,
       in_flight = :inFlight, ending = :ending, ending_at = :endingAt, ending_held_at = :endingHeldAt, output = :output,
       error = :error, started_at = :startedAt, finished_at = :finishedAt
     where seq = :seq`,
    { ...run, seq },
  );
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

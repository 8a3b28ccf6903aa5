import type { AttemptRecord, JobRecord, StepRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';

export async function putJob(sql: Sql, seq: number, job: JobRecord): Promise<void> {
  await sql(
    `insert into svc.job (run_seq, key, job_id, status, matrix, outputs, error, started_at, finished_at, ending, ending_at,
       ending_held_at)
     values (:seq, :key, :jobId, :status, :matrix, :outputs, :error, :startedAt, :finishedAt, :ending, :endingAt,
       :endingHeldAt)
     on conflict (run_seq, key) do update set status = excluded.status, outputs = excluded.outputs,
       error = excluded.error, started_at = excluded.started_at, finished_at = excluded.finished_at,
       ending = excluded.ending, ending_at = excluded.ending_at, ending_held_at = excluded.ending_held_at`,
    { ...job, seq },
  );
}

/** Writes a step. The definition (`found`) never changes, so only the first write stores the definition. */
export async function putStep(sql: Sql, seq: number, step: StepRecord): Promise<void> {
  await sql(
    `insert into svc.step (run_seq, job_key, idx, found, status, attempts, failures, output, error, wait, wake_at,
       idempotency_key, ready_at, started_at, queued_at, attempt_at, waiting_at, finished_at, end_order)
     values (:seq, :jobKey, :index, :found, :status, :attempts, :failures, :output, :error, :wait, :wakeAt,
       :idempotencyKey, :readyAt, :startedAt, :queuedAt, :attemptAt, :waitingAt, :finishedAt, :endOrder)
     on conflict (run_seq, job_key, idx) do update set status = excluded.status, attempts = excluded.attempts,
       failures = excluded.failures, output = excluded.output, error = excluded.error, wait = excluded.wait,
       wake_at = excluded.wake_at, idempotency_key = excluded.idempotency_key, ready_at = excluded.ready_at,
       started_at = excluded.started_at, queued_at = excluded.queued_at, attempt_at = excluded.attempt_at,
       waiting_at = excluded.waiting_at, finished_at = excluded.finished_at, end_order = excluded.end_order`,
    { ...step, seq },
  );
}

export async function putAttempt(sql: Sql, seq: number, attempt: AttemptRecord): Promise<void> {
  // A successful first attempt is not stored, because reads can derive the attempt from its step. The omission saves
  // most inserts.
  if (attempt.attempt === 1 && attempt.status === 'succeeded') return;
  await sql(
    `insert into svc.attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at, started_at, waiting_at,
       finished_at)
     values (:seq, :jobKey, :index, :attempt, :status, :errorClass, :error, :queuedAt, :startedAt, :waitingAt,
       :finishedAt)
     on conflict (run_seq, job_key, idx, attempt) do update set status = excluded.status,
       error_class = excluded.error_class, error = excluded.error, queued_at = excluded.queued_at,
       started_at = excluded.started_at, waiting_at = excluded.waiting_at, finished_at = excluded.finished_at`,
    { ...attempt, seq },
  );
}

export function readJobs(sql: Sql, seq: number): Promise<JobRecord[]> {
  return sql<JobRecord>(
    `select key, job_id as "jobId", status, matrix, outputs, error, started_at as "startedAt",
       finished_at as "finishedAt", ending, ending_at as "endingAt", ending_held_at as "endingHeldAt"
     from svc.job where run_seq = :seq order by key`,
    { seq },
  );
}

export function readSteps(sql: Sql, seq: number): Promise<StepRecord[]> {
  return sql<StepRecord>(
    `select job_key as "jobKey", idx as index, found, status, attempts, failures, output, error, wait,
       wake_at as "wakeAt", idempotency_key as "idempotencyKey", ready_at as "readyAt", started_at as "startedAt",
       queued_at as "queuedAt", attempt_at as "attemptAt", waiting_at as "waitingAt", finished_at as "finishedAt",
       end_order as "endOrder"
     from svc.step where run_seq = :seq order by job_key, idx`,
    { seq },
  );
}

export async function readAttempts(sql: Sql, seq: number): Promise<AttemptRecord[]> {
  const written = await sql<AttemptRecord>(
    `select job_key as "jobKey", idx as index, attempt, status, error_class as "errorClass", error,
       queued_at as "queuedAt", started_at as "startedAt", waiting_at as "waitingAt", finished_at as "finishedAt"
     from svc.attempt where run_seq = :seq order by job_key, idx, attempt`,
    { seq },
  );
  const known = new Set(written.map(({ jobKey, index }) => `${jobKey} ${index}`));
  const steps = await readSteps(sql, seq);
  const derived = steps
    .filter((step) => step.status === 'succeeded' && step.attempts === 1)
    .filter(({ jobKey, index }) => !known.has(`${jobKey} ${index}`))
    .map(firstAttempt);
  return [...written, ...derived];
}

function firstAttempt(step: StepRecord): AttemptRecord {
  const finishedAt = step.finishedAt ?? 0;
  return {
    jobKey: step.jobKey,
    index: step.index,
    attempt: 1,
    status: 'succeeded',
    errorClass: null,
    error: null,
    queuedAt: step.queuedAt,
    startedAt: step.attemptAt ?? finishedAt,
    waitingAt: step.waitingAt,
    finishedAt,
  };
}

import type { AttemptRecord, JobRecord, StepRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';

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

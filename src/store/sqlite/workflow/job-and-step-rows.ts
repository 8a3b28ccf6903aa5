import type { AttemptRecord, JobRecord, StepRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { LargeValues } from './large-values.ts';

type Seq = { seq: number };

/** Queries on the jobs, steps and attempts of runs. */
export function jobAndStepRows(db: Database, values: LargeValues) {
  const sql = statements(db);

  /**
   * Returns the definition to store with the step. Returns null if a large definition is already stored, because
   * definitions never change.
   */
  function foundOf(seq: number, { found, jobKey, index }: StepRecord): string | null {
    if (found === null || !values.isLarge(found)) return found;
    return sql.hasStep.get({ seq, jobKey, index }) ? null : values.put(seq, found);
  }

  return {
    putJob(seq: number, job: JobRecord): void {
      sql.putJob.run({
        ...job,
        seq,
        outputs: values.put(seq, job.outputs),
        error: values.put(seq, job.error),
      });
    },
    putStep(seq: number, step: StepRecord): void {
      sql.putStep.run({
        ...step,
        seq,
        found: foundOf(seq, step),
        output: values.put(seq, step.output),
        error: values.put(seq, step.error),
      });
    },
    /**
     * Inserts an attempt. A successful first attempt has no row, because `attempts` derives this attempt from the step.
     */
    putAttempt(seq: number, attempt: AttemptRecord): void {
      if (attempt.attempt === 1 && attempt.status === 'succeeded') return;
      sql.putAttempt.run({ ...attempt, seq, error: values.put(seq, attempt.error) });
    },
    jobs: (seq: number): JobRecord[] =>
      sql.jobs.all({ seq }).map((job) => ({
        ...job,
        outputs: values.get(seq, job.outputs),
        error: values.get(seq, job.error),
      })),
    steps: (seq: number): StepRecord[] =>
      sql.steps.all({ seq }).map((step) => ({
        ...step,
        found: values.get(seq, step.found),
        output: values.get(seq, step.output),
        error: values.get(seq, step.error),
      })),
    attempts(seq: number): AttemptRecord[] {
      const written = sql.attempts.all({ seq });
      const known = new Set(written.map(({ jobKey, index }) => `${jobKey} ${index}`));
      const atOnce = sql.steps
        .all({ seq })
        .filter((step) => step.status === 'succeeded' && step.attempts === 1)
        .filter(({ jobKey, index }) => !known.has(`${jobKey} ${index}`))
        .map(firstAttempt);
      return [...written, ...atOnce].map((attempt) => ({
        ...attempt,
        error: values.get(seq, attempt.error),
      }));
    },
  };
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

function statements(db: Database) {
  return {
    putJob: db.prepare<[Record<string, unknown>]>(`
      insert into job (run_seq, key, job_id, status, matrix, outputs, error, started_at, finished_at, ending, ending_at,
        ending_held_at)
      values (:seq, :key, :jobId, :status, :matrix, :outputs, :error, :startedAt, :finishedAt, :ending, :endingAt,
        :endingHeldAt)
      on conflict (run_seq, key) do update set status = excluded.status, outputs = excluded.outputs,
        error = excluded.error, started_at = excluded.started_at, finished_at = excluded.finished_at,
        ending = excluded.ending, ending_at = excluded.ending_at, ending_held_at = excluded.ending_held_at`),
    putStep: db.prepare<[Record<string, unknown>]>(`
      insert into step (run_seq, job_key, idx, found, status, attempts, failures, output, error, wait, wake_at, idempotency_key,
        ready_at,
        started_at, queued_at, attempt_at, waiting_at, finished_at, end_order)
      values (:seq, :jobKey, :index, :found, :status, :attempts, :failures, :output, :error, :wait, :wakeAt, :idempotencyKey, :readyAt,
        :startedAt, :queuedAt, :attemptAt, :waitingAt, :finishedAt, :endOrder)
      on conflict (run_seq, job_key, idx) do update set status = excluded.status, attempts = excluded.attempts,
        failures = excluded.failures, output = excluded.output, error = excluded.error, wait = excluded.wait, wake_at = excluded.wake_at,
        idempotency_key = excluded.idempotency_key, ready_at = excluded.ready_at, started_at = excluded.started_at,
        queued_at = excluded.queued_at, attempt_at = excluded.attempt_at, waiting_at = excluded.waiting_at,
        finished_at = excluded.finished_at, end_order = excluded.end_order`),
    hasStep: db.prepare<[{ seq: number; jobKey: string; index: number }]>(
      'select 1 from step where run_seq = :seq and job_key = :jobKey and idx = :index',
    ),
    putAttempt: db.prepare<[Record<string, unknown>]>(`
      insert or replace into attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at,
        started_at, waiting_at, finished_at)
      values (:seq, :jobKey, :index, :attempt, :status, :errorClass, :error, :queuedAt, :startedAt, :waitingAt, :finishedAt)`),
    jobs: db.prepare<[Seq], JobRecord>(`
      select key, job_id as jobId, status, matrix, outputs, error, started_at as startedAt, finished_at as finishedAt,
        ending, ending_at as endingAt, ending_held_at as endingHeldAt
      from job where run_seq = :seq order by key`),
    steps: db.prepare<[Seq], StepRecord>(`
      select job_key as jobKey, idx as "index", found, status, attempts, failures, output, error, wait, wake_at as wakeAt,
        idempotency_key as idempotencyKey, ready_at as readyAt, started_at as startedAt, queued_at as queuedAt,
        attempt_at as attemptAt, waiting_at as waitingAt, finished_at as finishedAt, end_order as endOrder
      from step where run_seq = :seq order by job_key, idx`),
    attempts: db.prepare<[Seq], AttemptRecord>(`
      select job_key as jobKey, idx as "index", attempt, status, error_class as errorClass, error,
        queued_at as queuedAt, started_at as startedAt, waiting_at as waitingAt, finished_at as finishedAt
      from attempt where run_seq = :seq order by job_key, idx, attempt`),
  };
}

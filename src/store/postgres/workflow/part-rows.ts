import type { AttemptRecord, EventRecord, JobRecord, LogLineRecord, StepRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { historyBodies } from './history-rows.ts';

export interface RunParts {
  jobs: readonly JobRecord[];
  steps: readonly StepRecord[];
  attempts: readonly AttemptRecord[];
  events: readonly EventRecord[];
  logs: readonly LogLineRecord[];
}

/** JSON objects with the columns of each table, in the order of the parameters of `svc.put_run_parts`. */
export type PartRows = Record<'jobs' | 'steps' | 'attempts' | 'events' | 'logs', string[]>;

/** Returns the rows of a run's parts as JSON. */
export function partRows(seq: number, { jobs, steps, attempts, events, logs }: RunParts): PartRows {
  return {
    jobs: jobs.map((job) => jobRow(seq, job)),
    steps: steps.map((step) => stepRow(seq, step)),
    attempts: attemptRows(seq, attempts),
    events: historyBodies(events).map((body) => rowJson({ run_seq: seq, body })),
    logs: historyBodies(logs).map((body) => rowJson({ run_seq: seq, body })),
  };
}

/** Writes the parts of a run. */
export async function putParts(sql: Sql, seq: number, parts: RunParts): Promise<void> {
  const rows = partRows(seq, parts);
  await sql('select svc.put_run_parts(array[:seq::bigint], :jobs, :steps, :attempts, :events, :logs)', {
    ...{ seq, jobs: jsonArray(rows.jobs), steps: jsonArray(rows.steps), attempts: jsonArray(rows.attempts) },
    ...{ events: jsonArray(rows.events), logs: jsonArray(rows.logs) },
  });
}

export const jsonArray = (rows: readonly string[]): string => `[${rows.join(',')}]`;

/** Returns a row as JSON. Replaces lone surrogates, which PostgreSQL rejects in JSON. */
export function rowJson(row: Record<string, unknown>): string {
  const json = JSON.stringify(row);
  if (!json.includes('\\ud')) return json;
  return JSON.stringify(row, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value));
}

function jobRow(run_seq: number, job: JobRecord): string {
  return rowJson({
    run_seq,
    key: job.key,
    job_id: job.jobId,
    status: job.status,
    matrix: job.matrix,
    outputs: job.outputs,
    error: job.error,
    started_at: job.startedAt,
    finished_at: job.finishedAt,
    ending: job.ending,
    ending_at: job.endingAt,
    ending_held_at: job.endingHeldAt,
  });
}

function stepRow(run_seq: number, step: StepRecord): string {
  return rowJson({
    run_seq,
    job_key: step.jobKey,
    idx: step.index,
    found: step.found,
    status: step.status,
    attempts: step.attempts,
    failures: step.failures,
    output: step.output,
    error: step.error,
    wait: step.wait,
    wake_at: step.wakeAt,
    idempotency_key: step.idempotencyKey,
    ready_at: step.readyAt,
    started_at: step.startedAt,
    queued_at: step.queuedAt,
    attempt_at: step.attemptAt,
    waiting_at: step.waitingAt,
    finished_at: step.finishedAt,
    end_order: step.endOrder,
  });
}

/** Returns the latest record of each attempt, because one statement can write a row only once. */
function attemptRows(run_seq: number, attempts: readonly AttemptRecord[]): string[] {
  const rows = new Map<string, string>();
  for (const each of attempts) {
    // A successful first attempt is not stored, because reads can derive the attempt from its step. The omission saves
    // most inserts.
    if (each.attempt === 1 && each.status === 'succeeded') continue;
    rows.set(`${each.jobKey} ${each.index} ${each.attempt}`, attemptRow(run_seq, each));
  }
  return [...rows.values()];
}

function attemptRow(run_seq: number, attempt: AttemptRecord): string {
  return rowJson({
    run_seq,
    job_key: attempt.jobKey,
    idx: attempt.index,
    attempt: attempt.attempt,
    status: attempt.status,
    error_class: attempt.errorClass,
    error: attempt.error,
    queued_at: attempt.queuedAt,
    started_at: attempt.startedAt,
    waiting_at: attempt.waitingAt,
    finished_at: attempt.finishedAt,
  });
}

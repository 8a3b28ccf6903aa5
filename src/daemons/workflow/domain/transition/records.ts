import type { PartStatus, RunError, StepWait } from '../../../../contracts/index.ts';
import { redactJson } from '../../../../kit/telemetry/redact.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { type Failure, failureOf } from '../run/failure.ts';
import { isFailure, type JobState, jobAt, type RunState, type StepState } from '../run/state.ts';
import { isFinal, move } from '../states.ts';
import { StepFailure } from '../steps/retry-policy.ts';
import type { Turn } from './turn.ts';

// This module changes the status of runs, jobs and steps. Each change is checked against the state table. Each change
// is stored together with an event.

/** Wait reasons that occur during an attempt. For all other reasons, the step waits between two attempts. */
const WAITS_OUTSIDE: ReadonlySet<string> = new Set(['time', 'signal', 'approval', 'child']);

/** Maximum total output of a run's steps, in characters of JSON. All outputs are in memory while the run is active. */
const MAX_KEPT_CHARS = 32 * 1024 * 1024;

export function setRun(
  turn: Turn,
  status: RunRecord['status'],
  by: 'engine' | 'caller',
  data?: Record<string, unknown>,
): void {
  const { run } = turn.state;
  run.status = move('run', run.status, status, by);
  turn.touchRun();
  turn.event({ type: `run.${status}`, ...(data ? { data } : {}) });
}

export function setJob(turn: Turn, job: JobState, status: PartStatus, error?: RunError): void {
  const { record } = job;
  const wasRunning = record.status === 'running';
  record.status = move('job', record.status, status, 'engine');
  if (error) record.error = JSON.stringify(redactJson(error, turn.state.run.tenantId));
  if (status === 'running' && record.startedAt === null) {
    record.startedAt = turn.now;
    const { timeoutMs } = turn.program.job(record.key);
    if (timeoutMs !== null) turn.note(record.startedAt + timeoutMs);
  }
  if (isFinal(status)) record.finishedAt = turn.now;
  turn.state.runningJobs += Number(status === 'running') - Number(wasRunning);
  turn.touchJob(job);
  if (status !== 'waiting')
    turn.event({ type: `job.${status === 'running' ? 'started' : status}`, job: record.key });
}

export function setStep(
  turn: Turn,
  step: StepState,
  status: PartStatus,
  data?: Record<string, unknown>,
): void {
  const { record } = step;
  record.status = move('step', record.status, status, 'engine');
  if (isFinal(status)) endStepRecord(turn.state, step, turn.now);
  if (status === 'succeeded') clearCrashes(turn);
  turn.touchStep(step);
  const type = `step.${status === 'running' ? 'started' : status}`;
  turn.event({ type, job: record.jobKey, step: turn.step(step).id, ...(data ? { data } : {}) });
}

function endStepRecord(state: RunState, step: StepState, now: number): void {
  const { record } = step;
  record.finishedAt = now;
  if (record.found !== null) record.endOrder = ++state.endedSteps;
  record.wait = null;
  record.wakeAt = null;
  step.wait = null;
}

/** Resets the crash and kill counts of the run, because a finished step is progress. */
function clearCrashes(turn: Turn): void {
  const { run } = turn.state;
  if (run.crashes + run.kills === 0) return;
  run.crashes = 0;
  run.kills = 0;
  turn.touchRun();
}

export function endAttempt(turn: Turn, step: StepState, status: PartStatus, failure: Failure | null): void {
  const { record } = step;
  turn.attempt({
    jobKey: record.jobKey,
    index: record.index,
    attempt: record.attempts,
    status,
    errorClass: failure?.errorClass ?? null,
    error: failure && JSON.stringify(failure.error),
    queuedAt: record.queuedAt,
    startedAt: record.attemptAt,
    waitingAt: record.waitingAt,
    finishedAt: turn.now,
  });
  const { id, uses } = turn.step(step);
  const ended = {
    stepId: `${record.jobKey}.${id}`,
    uses,
    attempt: record.attempts,
    status,
    durationMs: turn.now - (record.attemptAt ?? turn.now),
    failure,
  };
  turn.effect({ type: 'attempt.ended', ended });
}

export function succeed(turn: Turn, step: StepState, output: JsonValue): void {
  const { state } = turn;
  const { maxOutputChars } = state.limits;
  const json = JSON.stringify(output ?? null);
  if (json.length > maxOutputChars) {
    failStep(turn, step, tooLarge("The step's output takes", json.length, maxOutputChars));
    return;
  }
  const kept = state.keptChars + json.length;
  if (kept > MAX_KEPT_CHARS) {
    failStep(turn, step, tooLarge('The outputs of the run would take', kept, MAX_KEPT_CHARS));
    return;
  }
  state.keptChars = kept;
  step.output = output ?? null;
  step.record.output = json;
  step.record.error = null;
  step.error = null;
  setStep(turn, step, 'succeeded');
}

export function failStep(
  turn: Turn,
  step: StepState,
  { error, errorClass }: Failure,
  status: 'failed' | 'timed_out' = 'failed',
): void {
  const { record } = step;
  noteError(step, error);
  setStep(turn, step, status, { errorClass, code: error.code });
  if (isFailure(turn.program, step)) jobAt(turn.state, record.jobKey).failed = true;
  turn.log({ level: 'error', message: error.message, job: record.jobKey, step: turn.step(step).id });
}

export function noteError(step: StepState, error: RunError): void {
  step.error = error;
  step.record.error = JSON.stringify(error);
}

/** Sets a step to `waiting` until an event ends the wait. If `wakeAt` is not null, the wait also ends at that time. */
export function park(
  turn: Turn,
  step: StepState,
  wait: StepWait,
  wakeAt: number | null,
  data?: Record<string, unknown>,
): void {
  step.wait = wait;
  step.record.wait = JSON.stringify(wait);
  step.record.wakeAt = wakeAt;
  if (WAITS_OUTSIDE.has(wait.for)) step.record.waitingAt = turn.now;
  setStep(turn, step, 'waiting', { for: wait.for, ...data });
}

function tooLarge(what: string, chars: number, limit: number): Failure {
  const message = `${what} ${chars} characters as JSON; the limit is ${limit}. Store large data elsewhere and return a reference.`;
  const error = { code: 'PAYLOAD_TOO_LARGE', message, details: { chars, limit } };
  return failureOf(new StepFailure('validation', error));
}

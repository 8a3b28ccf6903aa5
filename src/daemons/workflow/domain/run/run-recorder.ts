import type { PartStatus, RunError } from '../../../../contracts/index.ts';
import { redactJson } from '../../../../kit/telemetry/redact.ts';
import type { Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import type { JsonValue, LoadedRun, RunRecord } from '../../../../store/ports/index.ts';
import { isFinal, move } from '../states.ts';
import { StepFailure } from '../steps/retry-policy.ts';
import type { RunJournal } from './run-journal.ts';
import { isFailure, type JobPart, type StepPart } from './run-parts.ts';
import { traceAttempt } from './run-trace.ts';

export interface RunRecorderDeps {
  clock: Clock;
  deadlines: Deadlines;
  /** Maximum output of a step, in characters of JSON. */
  mostOutput: number;
  /** Receives the spans of attempts. */
  tracer?: Tracer | undefined;
  jobStarted(): void;
  jobEnded(): void;
}

export type RunRecorder = ReturnType<typeof createRunRecorder>;

/** Waits that are part of an attempt; other waits lie between two attempts. */
const WAITS_OUTSIDE: ReadonlySet<string> = new Set(['time', 'signal', 'approval', 'child']);

/** Maximum total output of a run's steps, in characters of JSON: all are in memory while the run is active. */
const MOST_KEPT_CHARS = 32 * 1024 * 1024;

/**
 * Records status changes of a run and its parts: each is checked against the state table and written with its event.
 */
export function createRunRecorder(
  { run, steps }: Pick<LoadedRun, 'run' | 'steps'>,
  journal: RunJournal,
  deps: RunRecorderDeps,
) {
  const { clock, deadlines } = deps;
  let ended = Math.max(0, ...steps.map(({ endOrder }) => endOrder ?? 0));
  let kept = steps.reduce((sum, { output }) => sum + (output?.length ?? 0), 0);
  const inFlight = new Set<JobPart>();
  let flights = 0;

  /** Marks work outside of steps as in flight: if the service crashes during it, the run is a suspect. */
  function enterFlight(): void {
    flights++;
    noteFlights();
  }

  function leaveFlight(): void {
    flights--;
    noteFlights();
  }

  function noteFlights(): void {
    if (run.inFlight === flights > 0) return;
    run.inFlight = flights > 0;
    journal.touch('run');
  }

  function setRun(
    status: RunRecord['status'],
    by: 'engine' | 'caller',
    data?: Record<string, unknown>,
  ): void {
    run.status = move('run', run.status, status, by);
    journal.touch('run');
    journal.event({ type: `run.${status}`, ...(data ? { data } : {}) });
  }

  function setJob(part: JobPart, status: PartStatus, error?: RunError): void {
    const { record } = part;
    record.status = move('job', record.status, status, 'engine');
    if (error) record.error = JSON.stringify(redactJson(error));
    if (status === 'running' && record.startedAt === null) {
      record.startedAt = clock.now();
      if (part.job.timeoutMs !== null) deadlines.note(record.startedAt + part.job.timeoutMs);
    }
    if (isFinal(status)) record.finishedAt = clock.now();
    countJobs(part);
    journal.touch(part);
    if (status !== 'waiting')
      journal.event({ type: `job.${status === 'running' ? 'started' : status}`, job: record.key });
  }

  function countJobs(part: JobPart): void {
    const flies = part.record.status === 'running';
    if (flies === inFlight.has(part)) return;
    if (flies) {
      inFlight.add(part);
      deps.jobStarted();
    } else {
      inFlight.delete(part);
      deps.jobEnded();
    }
  }

  function setStep(part: StepPart, status: PartStatus, data?: Record<string, unknown>): void {
    const { record } = part;
    record.status = move('step', record.status, status, 'engine');
    if (isFinal(status)) {
      record.finishedAt = clock.now();
      if (record.found !== null) record.endOrder = ++ended;
      record.wait = null;
      record.wakeAt = null;
      part.wait = null;
      if (status === 'succeeded' && run.crashes + run.kills > 0) {
        run.crashes = 0;
        run.kills = 0;
        journal.touch('run');
      }
    }
    journal.touch(part);
    const type = `step.${status === 'running' ? 'started' : status}`;
    journal.event({ type, job: record.jobKey, step: part.step.id, ...(data ? { data } : {}) });
  }

  function endAttempt(part: StepPart, status: PartStatus, failure: StepFailure | null): void {
    const { record } = part;
    const finishedAt = clock.now();
    journal.attempt({
      jobKey: record.jobKey,
      index: record.index,
      attempt: record.attempts,
      status,
      errorClass: failure?.errorClass ?? null,
      error: failure && JSON.stringify(failure.error),
      queuedAt: record.queuedAt,
      startedAt: record.attemptAt,
      waitingAt: record.waitingAt,
      finishedAt,
    });
    traceAttempt(deps.tracer, run, part, {
      failure,
      durationMs: finishedAt - (record.attemptAt ?? finishedAt),
    });
  }

  function succeed(part: StepPart, output: JsonValue) {
    const json = JSON.stringify(output ?? null);
    if (json.length > deps.mostOutput)
      return failStep(part, tooLarge("The step's output takes", json.length, 'a step', deps.mostOutput));
    if (kept + json.length > MOST_KEPT_CHARS)
      return failStep(
        part,
        tooLarge('With it the steps hand on', kept + json.length, 'those of a run', MOST_KEPT_CHARS),
      );
    kept += json.length;
    part.output = output ?? null;
    part.record.output = json;
    part.record.error = null;
    part.error = null;
    setStep(part, 'succeeded');
  }

  function failStep(part: StepPart, failure: StepFailure, status: 'failed' | 'timed_out' = 'failed'): void {
    part.error = failure.error;
    part.record.error = JSON.stringify(failure.error);
    setStep(part, status, { errorClass: failure.errorClass, code: failure.error.code });
    if (isFailure(part)) part.job.failed = true;
    journal.log({
      level: 'error',
      message: failure.error.message,
      job: part.record.jobKey,
      step: part.step.id,
    });
  }

  function park(
    part: StepPart,
    wait: StepPart['wait'],
    wakeAt: number | null,
    data?: Record<string, unknown>,
  ): void {
    part.wait = wait;
    part.record.wait = JSON.stringify(wait);
    part.record.wakeAt = wakeAt;
    if (WAITS_OUTSIDE.has(wait!.for)) part.record.waitingAt = clock.now();
    setStep(part, 'waiting', { for: wait!.for, ...data });
  }

  /** Removes the run's jobs from the in-flight metric when the run leaves memory. */
  function settleCounts(): void {
    for (const _ of inFlight) deps.jobEnded();
    inFlight.clear();
  }

  return {
    ...{ setRun, setJob, setStep, endAttempt, succeed, failStep, park, countJobs, settleCounts },
    ...{ enterFlight, leaveFlight },
  };
}

function tooLarge(what: string, chars: number, who: string, limit: number): StepFailure {
  const message = `${what} ${chars} characters as JSON; ${who} may hand on ${limit}. Keep large data elsewhere and hand on where.`;
  return new StepFailure('validation', {
    code: 'PAYLOAD_TOO_LARGE',
    message,
    details: { chars, limit },
  });
}

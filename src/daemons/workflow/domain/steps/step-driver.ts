import type { Clock } from '../../../../kit/clock.ts';
import { seconds } from '../../../../kit/duration.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { Random } from '../../../../kit/random.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { FairSlots } from '../engine/slots.ts';
import type { RunJournal } from '../run/run-journal.ts';
import { type JobPart, type StepPart, stepIdOf } from '../run/run-parts.ts';
import type { RunRecorder } from '../run/run-recorder.ts';
import type { RunScopes } from '../run/run-scopes.ts';
import { type RunState, TIMED_OUT } from '../run/run-state.ts';
import { attemptSpan } from '../run/run-trace.ts';
import { isFinal } from '../states.ts';
import { evaluationFailure, retryDelay, StepFailure, toStepFailure } from './retry-policy.ts';
import type { StepCall, StepOutcome } from './step-kind.ts';
import { createStepWaits } from './step-waits.ts';

export interface StepDriverDeps {
  run: RunRecord;
  journal: RunJournal;
  recorder: RunRecorder;
  scopes: RunScopes;
  state: RunState;
  clock: Clock;
  random: Random;
  logger: Logger;
  slots: FairSlots;
  /** How a child ended; undefined while it has not. */
  childEnd(runId: string): Promise<RunRecord | undefined>;
}

export type StepDriver = ReturnType<typeof createStepDriver>;

/** After an abort a step has this long to come back; then it goes on without it. */
const ABORT_GRACE_MS = seconds(10);

/** The life of a step: its start, its attempts, its waits, its end. */
export function createStepDriver(deps: StepDriverDeps) {
  const { run, journal, recorder, scopes, state, clock, random, slots } = deps;
  const { setStep, endAttempt, succeed, failStep, park } = recorder;
  const { scopeOf, stateOf } = scopes;
  const { tryWake } = createStepWaits(deps, startEffect);

  /** Goes on with a step as far as it can. */
  function advanceStep(part: StepPart, job: JobPart) {
    const { record, step } = part;
    if (isFinal(record.status) || part.abort !== null || part.looking) return;
    if (record.status === 'waiting') return tryWake(part);
    if (record.status === 'interrupted') return goOn(part);
    if (record.status !== 'pending') return;
    try {
      if (!step.condition.holds(scopeOf(job, stateOf(job)))) return setStep(part, 'skipped');
    } catch (error) {
      return failStep(part, evaluationFailure(error));
    }
    if (step.kind.mode === 'effect') startEffect(part);
    else runInPlace(part);
    // What is in the inbox already must not be waited for.
    if (part.wait) tryWake(part);
  }

  function callOf(part: StepPart, values: Record<string, JsonValue>, signal: AbortSignal): StepCall {
    const { record, step } = part;
    const { attempts } = record;
    return {
      run: {
        id: run.id,
        tenantId: run.tenantId,
        workflowId: run.workflowId,
        hostId: run.hostId,
        requestId: run.requestId,
        traceId: run.traceId,
        // Steps that are done in place call nobody.
        get spanId() {
          return attemptSpan(run.id, stepIdOf(part), attempts);
        },
        depth: run.depth,
      },
      stepId: stepIdOf(part),
      attempt: attempts,
      uses: step.uses,
      input: values,
      idempotencyKey: record.idempotencyKey,
      timeoutMs: step.timeoutMs,
      signal,
      now: clock.now(),
      log(level, message) {
        journal.log({ level, message, job: record.jobKey, step: step.id });
        if (part.abort) void journal.flush();
      },
    };
  }

  /** The `with` and the key of an attempt that begins now. */
  function beginAttempt(part: StepPart): Record<string, JsonValue> {
    const { record, step } = part;
    record.attempts++;
    record.readyAt ??= clock.now();
    record.startedAt ??= clock.now();
    record.attemptAt = clock.now();
    record.wait = null;
    record.wakeAt = null;
    part.wait = null;
    const scope = scopeOf(part.job, stateOf(part.job));
    const key = step.idempotencyKey?.evaluate(scope);
    record.idempotencyKey = key === undefined ? null : String(key);
    return step.with.evaluate(scope) as Record<string, JsonValue>;
  }

  /** Runs what is done in place. */
  function runInPlace(part: StepPart): void {
    setStep(part, 'running', { attempt: part.record.attempts + 1 });
    try {
      const values = beginAttempt(part);
      const outcome = part.step.kind.run(callOf(part, values, NEVER)) as StepOutcome;
      if ('wait' in outcome) park(part, outcome.wait, outcome.until);
      else {
        succeed(part, outcome.output);
        endAttempt(part, part.record.status, null);
      }
    } catch (error) {
      const failure = evaluationFailure(error);
      endAttempt(part, 'failed', failure);
      failStep(part, failure);
    }
  }

  /** Starts an effect, or asks for the slot it needs. */
  function startEffect(part: StepPart): void {
    part.record.readyAt ??= clock.now();
    if (state.draining || part.slot === 'asked') return;
    if (part.step.kind.takesSlot && part.slot !== 'held') {
      if (!slots.tryTake(run.tenantId)) {
        part.slot = 'asked';
        part.withdraw = slots.ask(run.tenantId, () => {
          part.slot = 'held';
          part.withdraw = null;
          if (state.departure) freeSlot(part);
          else state.advance();
        });
        return;
      }
      part.slot = 'held';
    }
    setStep(part, 'running', { attempt: part.record.attempts + 1 });
    part.abort = new AbortController();
    state.launches.push(part);
  }

  function freeSlot(part: StepPart): void {
    const had = part.slot;
    part.slot = 'none';
    if (had === 'asked') part.withdraw?.();
    part.withdraw = null;
    if (had === 'held') slots.release(run.tenantId);
  }

  async function launch(part: StepPart, values: Record<string, JsonValue> | StepFailure): Promise<void> {
    const controller = part.abort!;
    const stopTimeout = clock.after(part.step.timeoutMs, () => controller.abort(TIMED_OUT));
    let outcome: StepOutcome | StepFailure;
    try {
      if (values instanceof StepFailure) throw values;
      controller.signal.throwIfAborted();
      const perform = part.perform ?? part.step.kind.run;
      const work = Promise.resolve(perform(callOf(part, values, controller.signal)));
      outcome = await Promise.race([work, afterAbort(controller.signal)]);
    } catch (error) {
      outcome = toStepFailure(error);
    } finally {
      stopTimeout();
    }
    part.abort = null;
    freeSlot(part);
    if (state.departure) return;
    settleAttempt(part, outcome, controller.signal);
    state.advance();
  }

  /** Rejects some time after the abort: a step that does not listen is left behind. */
  function afterAbort(signal: AbortSignal): Promise<never> {
    return new Promise((_, reject) => {
      const wait = (): void => {
        clock.after(ABORT_GRACE_MS, () => reject(signal.reason));
      };
      if (signal.aborted) wait();
      else signal.addEventListener('abort', wait, { once: true });
    });
  }

  function settleAttempt(part: StepPart, outcome: StepOutcome | StepFailure, signal: AbortSignal) {
    if (!(outcome instanceof StepFailure)) {
      if ('wait' in outcome) return park(part, outcome.wait, outcome.until);
      succeed(part, outcome.output);
      endAttempt(part, part.record.status, null);
      return;
    }
    const stopped = state.ending ?? part.job.ending;
    if (stopped) {
      endAttempt(part, stopped, null);
      setStep(part, stopped);
      return;
    }
    const timedOut = signal.aborted && signal.reason === TIMED_OUT;
    const failure = timedOut ? stepTimeout(part) : outcome;
    endAttempt(part, timedOut ? 'timed_out' : 'failed', failure);
    const delay = retryDelay(
      part.step.retry,
      {
        failure,
        attempts: part.record.attempts,
        firstStartedAt: part.record.startedAt ?? clock.now(),
        now: clock.now(),
      },
      random,
    );
    if (delay === null) return failStep(part, failure, timedOut ? 'timed_out' : 'failed');
    part.error = failure.error;
    part.record.error = JSON.stringify(failure.error);
    park(part, { for: 'retry' }, clock.now() + delay, { errorClass: failure.errorClass, delayMs: delay });
  }

  /** A step that a crash caught in mid-air: may it run again? */
  function goOn(part: StepPart) {
    const { step, record } = part;
    if (record.idempotencyKey !== null || mayRepeat(part)) return startEffect(part);
    const message = `The step was interrupted in mid-air (attempt ${record.attempts}) and may have had its effect. Say whether it is to be retried, taken as succeeded, or failed.`;
    park(part, { for: 'decision', message }, null);
    journal.log({ level: 'warn', message, job: record.jobKey, step: step.id });
  }

  function mayRepeat({ step }: StepPart): boolean {
    return step.idempotent ?? step.kind.isIdempotent(step.uses, step.rawWith);
  }

  function valuesOf(part: StepPart): Record<string, JsonValue> | StepFailure {
    try {
      return beginAttempt(part);
    } catch (error) {
      return evaluationFailure(error);
    }
  }

  return { advanceStep, launch, valuesOf, mayRepeat, freeSlot };
}

const NEVER = new AbortController().signal;

function stepTimeout({ step }: StepPart): StepFailure {
  return new StepFailure('timeout', {
    code: 'EXECUTION_TIMEOUT',
    message: `The step did not end within ${step.timeoutMs} ms.`,
    details: { timeoutMs: step.timeoutMs },
  });
}

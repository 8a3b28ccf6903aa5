import type { RunEnding } from '../../../../contracts/index.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { PluginWaits } from '../engine/plugin-waits.ts';
import type { FairSlots } from '../engine/slots.ts';
import type { JobPart, StepPart } from '../run/run-parts.ts';
import type { RunRecorder } from '../run/run-recorder.ts';
import { type RunState, reasonOf, TIMED_OUT } from '../run/run-state.ts';
import { isFinal } from '../states.ts';
import { type AttemptInputDeps, createAttemptInput } from './attempt-input.ts';
import { Interrupted } from './interrupted.ts';
import { PluginAway } from './plugin-away.ts';
import { evaluationFailure, retryDelay, StepFailure, stepTimeout, toStepFailure } from './retry-policy.ts';
import { BEGUN_FLUSH_MS, type StepOutcome } from './step-kind.ts';
import { createStepWaits } from './step-waits.ts';
import { createPluginParking } from './wait-for-plugin.ts';

export interface StepDriverDeps extends AttemptInputDeps {
  recorder: RunRecorder;
  state: RunState;
  deadlines: Deadlines;
  random: Random;
  logger: Logger;
  slots: FairSlots;
  pluginWaits: PluginWaits;
  /** Returns those of the given runs that have ended. */
  finishedRuns(ids: readonly string[]): Promise<RunRecord[]>;
  /** Cancels a child; durable once resolved. Resolves to false when the cancel failed. */
  cancelChild(runId: string): Promise<boolean>;
}

export type StepDriver = ReturnType<typeof createStepDriver>;

/** Time for a step to settle after an abort; then its work is abandoned. */
const ABORT_GRACE_MS = seconds(10);

/** Lost processes after which the step itself counts as the cause. */
const MAX_LOSSES = 3;

/** Drives steps: start, attempts, waits and end. */
export function createStepDriver(deps: StepDriverDeps) {
  const { run, journal, recorder, scopes, evaluations, state, clock, deadlines, random, slots } = deps;
  const { setStep, endAttempt, succeed, failStep, park } = recorder;
  const { scopeOf, stateOf } = scopes;
  const childrenStopped = new Set<string>();
  const { tryWake } = createStepWaits({ ...deps, startEffect, goOn, failAttempt });
  const { waitForPlugin, parkForPlugin } = createPluginParking(deps);
  const { callOf, givenNow, givenLater, noteBegun } = createAttemptInput(deps);

  /** Advances a step as far as possible. */
  function advanceStep(part: StepPart, job: JobPart) {
    const { record, step } = part;
    if (isFinal(record.status) || part.abort !== null || part.looking) return;
    if (record.status === 'waiting') return tryWake(part);
    if (record.status === 'interrupted') return goOn(part);
    if (record.status !== 'pending') return;
    try {
      const holds = evaluations.ask(job.record.ending ? record : part, step.condition, () =>
        scopeOf(job, stateOf(job)),
      );
      if (!holds) return;
      if (!holds.value) return setStep(part, 'skipped');
    } catch (error) {
      return failStep(part, evaluationFailure(error));
    }
    if (step.kind.mode === 'effect') startEffect(part);
    else runInPlace(part);
    // An entry that is already in the inbox ends the wait at once.
    if (part.wait) tryWake(part);
  }

  /** Begins an attempt, and evaluates its input in place where that is cheap. */
  function beginAttempt(part: StepPart): void {
    const { record, step } = part;
    setStep(part, 'running', { attempt: record.attempts + 1 });
    record.attempts++;
    record.readyAt ??= clock.now();
    record.queuedAt ??= record.readyAt;
    record.wait = null;
    record.wakeAt = null;
    record.idempotencyKey = null;
    part.wait = null;
    part.given = givenNow(part);
    if (part.given !== undefined && !step.kind.reportsBegin) noteBegun(part);
  }

  /** Runs an `instant` or `wait` step in place, unless its input needs a thread. */
  function runInPlace(part: StepPart): void {
    beginAttempt(part);
    if (part.given === undefined) {
      part.abort = new AbortController();
      state.launches.push(part);
      return;
    }
    try {
      if (part.given instanceof StepFailure) throw part.given;
      const outcome = part.step.kind.run(callOf(part, part.given, NEVER, NOTHING)) as StepOutcome;
      if ('wait' in outcome) parkUntil(part, outcome);
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

  function parkUntil(part: StepPart, { wait, until, byWallClock }: Extract<StepOutcome, { wait: unknown }>) {
    park(part, wait, until === null || byWallClock ? until : deadlines.note(until));
  }

  /** Starts an effect, or requests the slot it needs. */
  function startEffect(part: StepPart): void {
    part.record.readyAt ??= clock.now();
    if (state.draining || part.slot === 'asked') return;
    if (part.slot === 'none') queue(part);
    if (part.step.kind.takesSlot && part.slot !== 'held') {
      if (!slots.tryTake(run.tenantId)) {
        part.slot = 'asked';
        journal.touch(part);
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
    beginAttempt(part);
    part.abort = new AbortController();
    state.launches.push(part);
  }

  /** Resets the times of the attempt: it is queued from now on. */
  function queue({ record }: StepPart): void {
    record.queuedAt = clock.now();
    record.attemptAt = null;
    record.waitingAt = null;
  }

  function freeSlot(part: StepPart): void {
    const had = part.slot;
    part.slot = 'none';
    if (had === 'asked') part.withdraw?.();
    part.withdraw = null;
    if (had === 'held') slots.release(run.tenantId);
  }

  /** Clears the attempt of a step and releases its slot. */
  function drop(part: StepPart): void {
    part.abort = null;
    freeSlot(part);
  }

  async function launch(part: StepPart): Promise<void> {
    const controller = part.abort!;
    const { signal } = controller;
    const time = timeOf(part, controller);
    let outcome: StepOutcome | StepFailure;
    try {
      signal.throwIfAborted();
      part.given ??= await Promise.race([givenLater(part), afterAbort(signal)]);
      if (part.given === undefined) {
        drop(part);
        return state.advance();
      }
      if (part.given instanceof StepFailure) throw part.given;
      signal.throwIfAborted();
      if (!part.step.kind.reportsBegin) time.begin();
      const perform = part.perform ?? part.step.kind.run;
      const work = Promise.resolve(perform(callOf(part, part.given, signal, time.begin)));
      outcome = await Promise.race([work, afterAbort(signal)]);
    } catch (error) {
      outcome = toStepFailure(error);
    } finally {
      time.end();
    }
    drop(part);
    if (state.departure) return;
    settleAttempt(part, outcome, signal);
    state.advanceSoon();
  }

  /** Timer of an attempt: it starts with the work, so time in the queue does not count. */
  function timeOf(part: StepPart, controller: AbortController): { begin(): void; end(): void } {
    let stopTimeout: (() => void) | undefined;
    let stopFlush = NOTHING;
    return {
      begin() {
        if (stopTimeout) return;
        part.wasAway = false;
        stopTimeout = clock.after(part.step.timeoutMs, () => controller.abort(TIMED_OUT));
        if (part.record.attemptAt !== null) return;
        noteBegun(part);
        journal.touch(part);
        // Short attempts have ended by then, and one write covers their start and end.
        stopFlush = clock.after(BEGUN_FLUSH_MS, () => void journal.flush());
        // The clean-up timer, paused while the step was queued, resumes now.
        if (part.job.record.ending ?? state.ending) state.advance();
      },
      end() {
        stopTimeout?.();
        stopFlush();
      },
    };
  }

  /** Rejects a grace period after the abort: work that ignores its signal is abandoned. */
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
    part.wasAway = false;
    if (!(outcome instanceof StepFailure)) {
      if ('wait' in outcome) return parkUntil(part, outcome);
      succeed(part, outcome.output);
      endAttempt(part, part.record.status, null);
      return;
    }
    if (part.stopped) {
      endAttempt(part, part.stopped, null);
      setStep(part, part.stopped);
      return;
    }
    if (outcome instanceof PluginAway && (part.record.attemptAt === null || !part.step.kind.reportsBegin))
      return parkForPlugin(part, outcome);
    if (outcome instanceof Interrupted && !signal.aborted && part.losses < MAX_LOSSES)
      return interrupt(part, outcome);
    const timedOut = signal.aborted && signal.reason === TIMED_OUT;
    failAttempt(part, timedOut ? stepTimeout(part.step) : outcome, timedOut ? 'timed_out' : 'failed');
  }

  function failAttempt(part: StepPart, failure: StepFailure, status: 'failed' | 'timed_out') {
    endAttempt(part, status, failure);
    part.record.failures++;
    const { retry, kind } = part.step;
    const delay = retryDelay(
      kind.mode === 'effect' && (retry?.isOwn || harmless(part)) ? retry : undefined,
      {
        failure,
        attempts: part.record.attempts,
        firstStartedAt: part.record.startedAt ?? clock.now(),
        now: clock.now(),
      },
      random,
    );
    if (delay === null) return failStep(part, failure, status);
    part.error = failure.error;
    part.record.error = JSON.stringify(failure.error);
    park(part, { for: 'retry' }, deadlines.note(clock.now() + delay), {
      errorClass: failure.errorClass,
      delayMs: delay,
    });
  }

  /** Handles a lost process like a crash: repeatable steps run again, others wait for an operator's decision. */
  function interrupt(part: StepPart, why: Interrupted): void {
    const { record, step } = part;
    part.losses++;
    endAttempt(part, 'interrupted', why);
    journal.log({ level: 'warn', message: why.message, job: record.jobKey, step: step.id });
    if (record.attemptAt === null) park(part, { for: 'retry' }, clock.now());
    else setStep(part, 'interrupted');
  }

  /** Aborts the in-flight work of a step that ends with its run or job. */
  function stopStep(part: StepPart, how: RunEnding): void {
    part.stopped ??= how;
    part.abort?.abort(reasonOf(how));
    if (part.slot === 'asked') freeSlot(part);
  }

  /** Ends a step with its run or job, once it has no work in flight and its child has ended. */
  function endStep(part: StepPart, how: RunEnding, isOverdue = false): void {
    const child = part.wait?.for === 'child' ? part.wait.runId : undefined;
    if (child !== undefined && !childrenStopped.has(child)) {
      childrenStopped.add(child);
      void deps.cancelChild(child);
    }
    stopStep(part, how);
    if (part.abort !== null) return;
    if (child !== undefined && !isOverdue) {
      tryWake(part);
      return;
    }
    const { status } = part.record;
    setStep(part, status === 'waiting' || status === 'running' ? how : 'cancelled');
  }

  /** Resumes a step that was in flight at a crash; if a repeat may be harmful, an operator decides. */
  function goOn(part: StepPart) {
    const { step, record } = part;
    const away = step.kind.away?.(step.uses);
    // Only the manifest of the missing plugin says whether the step may run again.
    if (away && record.idempotencyKey === null) return waitForPlugin(part, away, { interrupted: true });
    // The key is durable before the work begins, and so is the start time unless the kind reports its begin.
    const lacksKey = step.idempotencyKey !== null && record.idempotencyKey === null;
    const hasBegun = !lacksKey && (record.attemptAt !== null || step.kind.reportsBegin);
    const repeats =
      step.afterInterruption === undefined ? harmless(part) : step.afterInterruption === 'repeat';
    if (!hasBegun || repeats) return startEffect(part);
    const message = `The step was interrupted in mid-air (attempt ${record.attempts}) and may have had its effect. Say whether it is to be retried, taken as succeeded, or failed.`;
    park(part, { for: 'decision', message }, null);
    journal.log({ level: 'warn', message, job: record.jobKey, step: step.id });
  }

  /** Whether a repeat of the step has no second effect. */
  function harmless({ step, record }: StepPart): boolean {
    if (record.idempotencyKey !== null) return true;
    return step.idempotent ?? step.kind.isIdempotent(step.uses, step.rawWith);
  }

  return { advanceStep, launch, drop, freeSlot, stopStep, endStep };
}

const NEVER = new AbortController().signal;
const NOTHING = (): void => {};

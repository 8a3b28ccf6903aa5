import { isOwnStep } from '../definition/compile-code.ts';
import type { Attempt } from '../run/effects.ts';
import type { EvaluatedInput, StepFacts } from '../run/events.ts';
import { evaluationFailure } from '../run/failure.ts';
import { hasSlotRequest, type JobState, jobAt, type StepState, stepKeyOf } from '../run/state.ts';
import { stepRunOf } from '../run/step-call.ts';
import type { StepCall } from '../steps/step-kind.ts';
import { beginOwnFlight } from './own-steps.ts';
import { endAttempt, failStep, park, setStep, succeed } from './records.ts';
import { scopeOf, seenBy } from './scopes.ts';
import { mayRepeat, parkUntil, settleAttempt } from './settle.ts';
import type { Turn } from './turn.ts';

/** Begins an attempt of the step. If the step needs a slot and no slot is free, requests a slot instead. */
export function startAttempt(turn: Turn, step: StepState): void {
  const { record } = step;
  record.readyAt ??= turn.now;
  if (turn.state.draining || hasSlotRequest(step)) return;
  // Resets the times of the previous attempt, because the step is now queued again.
  record.queuedAt = turn.now;
  record.attemptAt = null;
  record.waitingAt = null;
  const key = stepKeyOf(step);
  if (turn.step(step).kind.takesSlot && !turn.takeSlot(key)) {
    step.flight = 'queued';
    turn.touchStep(step);
    turn.effect({ type: 'slot.request', owner: key });
    return;
  }
  beginAttempt(turn, step);
}

/**
 * Begins an attempt that holds its slot or needs no slot. The input is evaluated synchronously if the evaluation is
 * cheap.
 */
export function beginAttempt(turn: Turn, step: StepState): void {
  const { record } = step;
  const { kind } = turn.step(step);
  setStep(turn, step, 'running', { attempt: record.attempts + 1 });
  record.attempts++;
  record.readyAt ??= turn.now;
  record.queuedAt ??= record.readyAt;
  record.wait = null;
  record.wakeAt = null;
  record.idempotencyKey = null;
  step.wait = null;
  step.isExpired = false;
  const job = jobAt(turn.state, record.jobKey);
  const given = inputNow(turn, step, job);
  if (given === undefined) {
    step.flight = 'evaluating';
    turn.mark();
    const scope = scopeOf(turn, job, seenBy(job));
    turn.effect({ type: 'attempt.evaluate', attempt: attemptOf(turn, step), scope });
    return;
  }
  if (!kind.reportsBegin) noteBegun(turn, step);
  perform(turn, step, given);
}

/**
 * Continues an attempt with the input that a worker thread evaluated. The idempotency key is durable before the work
 * begins.
 */
export function useInput(turn: Turn, step: StepState, given: EvaluatedInput, facts: StepFacts): void {
  if ('failure' in given) {
    releaseSlot(turn, step);
    settleAttempt(turn, step, given, facts);
    return;
  }
  step.record.idempotencyKey = given.idempotencyKey;
  if (!turn.step(step).kind.reportsBegin) noteBegun(turn, step);
  turn.touchStep(step);
  perform(turn, step, given);
}

export function noteBegun(turn: Turn, { record }: StepState): void {
  record.attemptAt = turn.now;
  record.startedAt ??= turn.now;
}

export function releaseSlot(turn: Turn, step: StepState): void {
  if (turn.step(step).kind.takesSlot) turn.effect({ type: 'slot.release', owner: stepKeyOf(step) });
}

function inputNow(turn: Turn, step: StepState, job: JobState): EvaluatedInput | undefined {
  const { idempotencyKey, with: template } = turn.step(step);
  const scope = scopeOf(turn, job, seenBy(job));
  const key = idempotencyKey && turn.evaluate(idempotencyKey, scope);
  if (key === undefined) return undefined;
  if (key && 'failure' in key) return key;
  const values = turn.evaluate(template, scope);
  if (values === undefined || 'failure' in values) return values;
  step.record.idempotencyKey = key ? String(key.value) : null;
  return { idempotencyKey: step.record.idempotencyKey, input: values.value as StepCall['input'] };
}

function attemptOf(turn: Turn, step: StepState): Attempt {
  const { record, losses } = step;
  return {
    step: stepKeyOf(step),
    stepId: `${record.jobKey}.${turn.step(step).id}`,
    attempt: record.attempts,
    failures: record.failures,
    idempotencyKey: record.idempotencyKey,
    isAlone: losses > 0,
  };
}

function perform(turn: Turn, step: StepState, given: EvaluatedInput): void {
  const compiled = turn.step(step);
  if (compiled.kind.mode !== 'effect') {
    performInPlace(turn, step, given);
    return;
  }
  step.flight = 'working';
  if (!compiled.kind.reportsBegin) step.wasUnavailable = false;
  const attempt = attemptOf(turn, step);
  if (isOwnStep(compiled)) beginOwnFlight(turn, step, attempt);
  turn.effect({ type: 'attempt.start', attempt, given });
}

/** Performs an `instant` or `wait` step synchronously. */
function performInPlace(turn: Turn, step: StepState, given: EvaluatedInput): void {
  step.flight = 'idle';
  try {
    if ('failure' in given) {
      endAttempt(turn, step, 'failed', given.failure);
      failStep(turn, step, given.failure);
      return;
    }
    const outcome = turn.step(step).kind.run(callOf(turn, step, given.input));
    if (outcome instanceof Promise) throw new Error('A step in place returned a promise.');
    if ('wait' in outcome) {
      parkUntil(turn, step, outcome);
      return;
    }
    succeed(turn, step, outcome.output);
    endAttempt(turn, step, step.record.status, null);
  } catch (error) {
    const failure = evaluationFailure(error);
    endAttempt(turn, step, 'failed', failure);
    failStep(turn, step, failure);
  }
}

/**
 * Returns the `StepCall` of a synchronous step. The call needs no span id and no abort, because the step makes no calls
 * itself.
 */
function callOf(turn: Turn, step: StepState, input: StepCall['input']): StepCall {
  const { uses, timeoutMs, id } = turn.step(step);
  const { stepId, attempt, failures, idempotencyKey, isAlone } = attemptOf(turn, step);
  return {
    run: stepRunOf(turn.state.run, ''),
    ...{ stepId, attempt, failures, uses, input, idempotencyKey, timeoutMs },
    signal: NEVER,
    alone: isAlone,
    begun() {},
    now: turn.now,
    log: (level, message) => turn.log({ level, message, job: step.record.jobKey, step: id }),
    startChild() {
      throw new Error('A step that is performed in place cannot start a run.');
    },
  };
}
const NEVER = new AbortController().signal;

/**
 * Resumes a step that was in flight during a crash. For a plugin's step, first looks up whether the manifest declares
 * that the step can safely run again.
 */
export function resume(turn: Turn, step: StepState, builtIn: StepFacts): void {
  if (turn.step(step).kind.away === undefined) {
    resumeWith(turn, step, builtIn);
    return;
  }
  if (turn.state.draining) return;
  step.flight = 'looking';
  turn.effect({ type: 'step.inspect', step: stepKeyOf(step) });
}

/**
 * Begins the next attempt of an interrupted step. If the work has begun and a repeat might be harmful, the step waits
 * for an operator's decision instead.
 */
export function resumeWith(turn: Turn, step: StepState, facts: StepFacts): void {
  const { record } = step;
  const { kind, idempotencyKey, afterInterruption, id } = turn.step(step);
  // The idempotency key and the start time are durable before the work begins. If either is missing, the work has not
  // begun. Kinds with `reportsBegin` record the start time later, so their start time is not checked.
  const lacksKey = idempotencyKey !== null && record.idempotencyKey === null;
  const hasBegun = !lacksKey && (record.attemptAt !== null || kind.reportsBegin);
  const repeats =
    afterInterruption === undefined ? mayRepeat(turn, step, facts) : afterInterruption === 'repeat';
  if (!hasBegun || repeats) {
    startAttempt(turn, step);
    return;
  }
  const message = `The step was interrupted in flight (attempt ${record.attempts}) and may have had its effect. Say whether it is to be retried, taken as succeeded, or failed.`;
  park(turn, step, { for: 'decision', message }, null);
  turn.log({ level: 'warn', message, job: record.jobKey, step: id });
}

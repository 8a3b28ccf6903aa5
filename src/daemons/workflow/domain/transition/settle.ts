import { isOwnStep } from '../definition/compile-code.ts';
import type { AttemptOutcome, StepFacts } from '../run/events.ts';
import { type Failure, failureOf } from '../run/failure.ts';
import type { StepState } from '../run/state.ts';
import { retryDelay, StepFailure } from '../steps/retry-policy.ts';
import { endAttempt, failStep, noteError, park, setStep, succeed } from './records.ts';
import type { Turn } from './turn.ts';

/** Number of unexpected process ends after which the step itself counts as the cause. */
const MAX_LOSSES = 3;

/** Records the outcome of an attempt that was in flight. */
export function settleAttempt(turn: Turn, step: StepState, outcome: AttemptOutcome, facts: StepFacts): void {
  step.flight = 'idle';
  step.wasUnavailable = false;
  if ('wait' in outcome) parkUntil(turn, step, outcome);
  else if ('output' in outcome) {
    succeed(turn, step, outcome.output);
    endAttempt(turn, step, step.record.status, null);
  } else if (step.stopped) endStopped(turn, step, step.stopped);
  else settleFailure(turn, step, outcome.failure, facts);
}

/** Ends a stopped step after its in-flight work has ended. The step gets the status `how`. */
export function endStopped(turn: Turn, step: StepState, how: NonNullable<StepState['stopped']>): void {
  endAttempt(turn, step, how, null);
  setStep(turn, step, how);
}

export function parkUntil(
  turn: Turn,
  step: StepState,
  { wait, until, byWallClock }: Extract<AttemptOutcome, { wait: unknown }>,
): void {
  park(turn, step, wait, until === null || byWallClock ? until : turn.note(until));
}

function settleFailure(turn: Turn, step: StepState, failure: Failure, facts: StepFacts): void {
  const compiled = turn.step(step);
  if (failure.away && (step.record.attemptAt === null || !compiled.kind.reportsBegin))
    uncountAttempt(turn, step, failure);
  else if (failure.interrupted && !step.isExpired && step.losses < MAX_LOSSES) interrupt(turn, step, failure);
  else if (step.isExpired) {
    const { timeoutMs } = compiled;
    const message = `The step did not end within ${timeoutMs} ms.`;
    const error = { code: 'EXECUTION_TIMEOUT', message, details: { timeoutMs } };
    failAttempt(turn, step, { errorClass: 'timeout', error, retryAfterMs: null }, 'timed_out', facts);
  } else failAttempt(turn, step, failure, 'failed', facts);
}

/** Fails an attempt. Schedules another attempt if the retry policy of the step allows a retry. */
export function failAttempt(
  turn: Turn,
  step: StepState,
  failure: Failure,
  status: 'failed' | 'timed_out',
  facts: StepFacts,
): void {
  const { record } = step;
  endAttempt(turn, step, status, failure);
  record.failures++;
  const { retry, kind } = turn.step(step);
  const mayRetry = kind.mode === 'effect' && (retry?.isOwn || mayRepeat(turn, step, facts));
  const delayMs = retryDelay(mayRetry ? retry : undefined, {
    failure,
    attempts: record.attempts,
    firstStartedAt: record.startedAt ?? turn.now,
    now: turn.now,
    fraction: turn.fraction,
  });
  if (delayMs === null) {
    failStep(turn, step, failure, status);
    return;
  }
  noteError(step, failure.error);
  park(turn, step, { for: 'retry' }, turn.note(turn.now + delayMs), {
    errorClass: failure.errorClass,
    delayMs,
  });
}

/** Returns whether the step can be repeated without causing its side effect twice. */
export function mayRepeat(turn: Turn, step: StepState, { isIdempotent }: StepFacts): boolean {
  return step.record.idempotencyKey !== null || (turn.step(step).idempotent ?? isIdempotent);
}

/**
 * Handles the unexpected end of a step's process. If the attempt had not begun, the step waits for a retry. Otherwise,
 * the step becomes `interrupted`.
 */
function interrupt(turn: Turn, step: StepState, failure: Failure): void {
  const { record } = step;
  step.losses++;
  endAttempt(turn, step, 'interrupted', failure);
  const { message } = failure.error;
  turn.log({ level: 'warn', message, job: record.jobKey, step: turn.step(step).id });
  if (record.attemptAt === null) park(turn, step, { for: 'retry' }, turn.now);
  else setStep(turn, step, 'interrupted');
}

/** Removes an attempt from the attempt count, because the plugin was unavailable and the work never began. */
function uncountAttempt(turn: Turn, step: StepState, failure: Failure): void {
  const { record } = step;
  record.attempts--;
  record.attemptAt = null;
  if (record.attempts === 0) record.startedAt = null;
  waitForPlugin(turn, step, failure, {});
}

/**
 * Sets a step to wait for the next reload of its plugin. If the plugin exists but cannot start, a timer also retries
 * the step.
 */
export function waitForPlugin(
  turn: Turn,
  step: StepState,
  { away, error }: Failure,
  more: { interrupted?: true },
): void {
  const { pluginId, isMissing, pauseMs } = away!;
  const { message } = error;
  step.wasUnavailable = true;
  turn.effect({ type: 'plugin.awaited', pluginId, why: message });
  const wakeAt = isMissing ? null : turn.note(turn.now + pauseMs);
  park(turn, step, { for: 'plugin', name: pluginId, message, ...more }, wakeAt, { plugin: pluginId });
}

/** Returns the properties of a built-in step, which do not depend on plugins. */
export function builtInFacts(turn: Turn, step: StepState): StepFacts {
  const compiled = turn.step(step);
  if (isOwnStep(compiled)) return { isIdempotent: false };
  return { isIdempotent: compiled.kind.isIdempotent(compiled.uses, compiled.rawWith) };
}

export function plainFailure(...args: ConstructorParameters<typeof StepFailure>): Failure {
  return failureOf(new StepFailure(...args));
}

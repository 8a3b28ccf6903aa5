import type { RunEnding } from '../../../../contracts/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import { isAtWork, type JobState, type StepState, stepKeyOf } from '../run/state.ts';
import { isFinal } from '../states.ts';
import { beginAttempt, releaseSlot, resume, startAttempt } from './attempts.ts';
import { cancelChildOf } from './children.ts';
import { noteOwnStop } from './own-steps.ts';
import { failStep, setStep } from './records.ts';
import { scopeOf, seenBy } from './scopes.ts';
import { builtInFacts, endStopped } from './settle.ts';
import type { Evaluated, Turn } from './turn.ts';
import { tryWake } from './waits.ts';

export function advanceStep(turn: Turn, step: StepState, job: JobState): void {
  const { record } = step;
  if (isFinal(record.status) || step.flight !== 'idle') return;
  if (record.status === 'waiting') {
    tryWake(turn, step);
    return;
  }
  if (record.status === 'interrupted') {
    resume(turn, step, builtInFacts(turn, step));
    return;
  }
  if (record.status !== 'pending') return;
  const holds = stepHolds(turn, step, job, seenBy(job));
  if (!holds) return;
  if ('failure' in holds) {
    failStep(turn, step, holds.failure);
    return;
  }
  if (!holds.value) {
    setStep(turn, step, 'skipped');
    return;
  }
  // A drain does not delay the end of steps that are skipped. All other steps begin after the drain.
  if (turn.state.draining) return;
  if (turn.step(step).kind.mode === 'effect') startAttempt(turn, step);
  else beginAttempt(turn, step);
  // An inbox entry that arrived before the wait, such as a signal, ends the wait at once.
  if (step.wait) tryWake(turn, step);
}

/**
 * Returns whether the `if` condition of a step is true. Returns undefined while a worker thread evaluates the
 * condition.
 */
export function stepHolds(
  turn: Turn,
  step: StepState,
  job: JobState,
  seen: Parameters<typeof scopeOf>[2],
): Evaluated<boolean> | undefined {
  const key = stepKeyOf(step);
  const id = job.record.ending ? `if ${key} ending` : `if ${key}`;
  const target = { of: 'step.if', step: key } as const;
  return turn.ask(id, turn.step(step).condition, target, () => scopeOf(turn, job, seen));
}

/** Aborts the in-flight work of a step, because the run or job of the step ends. */
export function stopStep(turn: Turn, step: StepState, how: RunEnding): void {
  const isFirst = step.stopped === null;
  step.stopped ??= how;
  if (step.flight === 'queued') {
    step.flight = 'idle';
    turn.effect({ type: 'slot.release', owner: stepKeyOf(step) });
  } else if (step.flight === 'evaluating') {
    // The step ends at once, because its work has not begun.
    step.flight = 'idle';
    releaseSlot(turn, step);
    endStopped(turn, step, step.stopped);
  } else if (step.flight === 'working' && isFirst) {
    turn.effect({ type: 'attempt.abort', step: stepKeyOf(step), how });
    if (isOwnStep(turn.step(step))) noteOwnStop(turn, step);
  }
}

/**
 * Ends a step because its run or job ends. Work in flight delays the end of the step. An unfinished child run also
 * delays the end until the clean-up limit has passed.
 */
export function endStep(turn: Turn, step: StepState, how: RunEnding, isOverdue = false): void {
  const child = cancelChildOf(turn, step);
  stopStep(turn, step, how);
  if (isAtWork(step) || isFinal(step.record.status)) return;
  if (child !== undefined && !isOverdue) {
    tryWake(turn, step);
    return;
  }
  const { status } = step.record;
  setStep(turn, step, status === 'waiting' || status === 'running' ? how : 'cancelled');
}

/**
 * Withdraws the slot requests of queued steps, so that no new work starts. The effect may start after the drain has
 * ended. Until then, the steps must not take slots, because the effect would release them.
 */
export function dequeue(turn: Turn, steps: readonly StepState[]): void {
  for (const step of steps) {
    if (step.flight !== 'queued') continue;
    step.flight = 'withdrawing';
    turn.effect({ type: 'slot.withdraw', step: stepKeyOf(step) });
  }
}

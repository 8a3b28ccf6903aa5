import { type CleanUpTimer, type Hold, hasSlotRequest, isAtWork, type StepState } from '../run/state.ts';
import { isReplaying } from './replay-state.ts';
import type { Turn } from './turn.ts';

/** Stored times of the clean-up of a run or job. The end of the clean-up time limit is computed from these times. */
export interface LimitTimes {
  endingAt: number | null;
  endingHeldAt: number | null;
}

/** Returns the time limit for the clean-up of a run, in ms. */
export function cleanUpMsOf({ state, program }: Turn): number {
  return program.workflow.definition.cleanUpTimeoutMs ?? state.limits.cleanUpMs;
}

/**
 * Returns whether the time limit of a clean-up has passed. The limit is paused while the clean-up waits for others,
 * such as a plugin or an operator. @spec docs/decisions/0170
 */
export function isLimitOver(turn: Turn, timer: CleanUpTimer, times: LimitTimes, hold: Hold): boolean {
  const endsAt = limitEndsAt(turn, timer, times, hold);
  timer.isOver ||= endsAt !== null && turn.isPast(endsAt);
  return timer.isOver;
}

/**
 * Returns the time at which the clean-up limit passes. Returns null if the limit has passed or the timer is not
 * running. While the timer is paused for an unavailable plugin, returns the time at which that wait is over at the
 * latest.
 */
export function limitEndsAt(
  turn: Turn,
  { isOver }: CleanUpTimer,
  { endingAt, endingHeldAt }: LimitTimes,
  hold: Hold,
): number | null {
  if (endingAt === null || isOver) return null;
  if (endingHeldAt === null) return endingAt + cleanUpMsOf(turn);
  return hold === 'plugin' ? endingHeldAt + turn.state.limits.maxPluginWaitMs : null;
}

/** Starts, pauses or resumes the clean-up timer. Returns whether the stored times changed. */
export function countLimit(turn: Turn, timer: CleanUpTimer, times: LimitTimes, hold: Hold): boolean {
  if (timer.isOver) return false;
  const { now } = turn;
  const { endingAt, endingHeldAt } = times;
  const isOtherHold = hold !== (timer.hold ?? hold);
  timer.hold = hold;
  if (endingAt === null) times.endingAt = now;
  else if (endingHeldAt !== null && (hold === null || isOtherHold))
    times.endingAt = endingAt + Math.max(0, now - endingHeldAt);
  if (hold === null) times.endingHeldAt = null;
  else if (endingHeldAt === null || isOtherHold) times.endingHeldAt = now;
  const hasChanged = times.endingAt !== endingAt || times.endingHeldAt !== endingHeldAt;
  if (hasChanged && hold === null) turn.note(times.endingAt! + cleanUpMsOf(turn));
  return hasChanged;
}

/** Returns the reason why these steps pause the clean-up timer. Returns null if no step pauses the timer. */
export function holdOf(turn: Turn, steps: readonly StepState[]): Hold {
  if (isDrained(turn, steps)) return 'others';
  if (steps.some((step) => awaitsOthers(step) || isQueued(turn, step))) return 'others';
  return steps.some(awaitsPlugin) ? 'plugin' : null;
}

/** Returns whether the drain of the run keeps all of these steps from beginning. */
function isDrained({ state }: Turn, steps: readonly StepState[]): boolean {
  return state.draining && !isReplaying(state) && !steps.some(isAtWork);
}

/**
 * Returns whether the step waits for a decision or a cancelled child. A child that the clean-up started is excluded,
 * because its duration counts towards the limit.
 */
const awaitsOthers = ({ wait, stopped }: StepState): boolean =>
  wait?.for === 'decision' || (wait?.for === 'child' && stopped !== null);

/** Returns whether the step is queued for a slot or for a process of its plugin. */
function isQueued(turn: Turn, step: StepState): boolean {
  if (hasSlotRequest(step)) return true;
  const mayBeQueued = isAtWork(step) && step.record.attemptAt === null && !step.wasUnavailable;
  return mayBeQueued && turn.step(step).kind.reportsBegin === true;
}

/** Returns whether the step waits for its plugin or calls the plugin again after such a wait. */
const awaitsPlugin = ({ wait, wasUnavailable, record }: StepState): boolean =>
  wait?.for === 'plugin' || (wasUnavailable && record.status === 'running');

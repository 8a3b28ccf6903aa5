import { type CleanUpTimer, type Hold, isAtWork, type StepState } from '../run/state.ts';
import type { Turn } from './turn.ts';

/** Stored times of the clean-up limit of a run or job. */
export interface LimitTimes {
  endingAt: number | null;
  endingHeldAt: number | null;
}

/** Clean-up limit of the runs of a definition, in ms. */
export function cleanUpMsOf({ state, program }: Turn): number {
  return program.workflow.definition.cleanUpTimeoutMs ?? state.limits.cleanUpMs;
}

/**
 * Whether the time limit of a clean-up has passed. The limit is stored, and paused while a clean-up is held up.
 * @spec docs/decisions/0170
 */
export function isLimitOver(turn: Turn, timer: CleanUpTimer, times: LimitTimes, hold: Hold): boolean {
  const endsAt = limitEndsAt(turn, timer, times, hold);
  timer.isOver ||= endsAt !== null && turn.isPast(endsAt);
  return timer.isOver;
}

/** Returns when the limit passes if nothing changes; null when it has not started, is paused or has passed. */
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

/** Starts, pauses or resumes the timer. True when the stored times changed. */
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

/** Returns the wait that pauses the clean-up of these steps; null when none does. */
export function holdOf(turn: Turn, steps: readonly StepState[]): Hold {
  if (steps.some((step) => awaitsOthers(step) || isQueued(turn, step))) return 'others';
  return steps.some(awaitsPlugin) ? 'plugin' : null;
}

/** Excludes children started by the clean-up itself: their time counts towards its limit. */
const awaitsOthers = ({ wait, stopped }: StepState): boolean =>
  wait?.for === 'decision' || (wait?.for === 'child' && stopped !== null);

/** Whether the step is queued for a slot or for a process of its plugin. */
function isQueued(turn: Turn, step: StepState): boolean {
  if (step.flight === 'queued') return true;
  const mayBeQueued = isAtWork(step) && step.record.attemptAt === null && !step.wasAway;
  return mayBeQueued && turn.step(step).kind.reportsBegin === true;
}

/** Whether the step waits for its plugin, or retries it after such a wait. */
const awaitsPlugin = ({ wait, wasAway, record }: StepState): boolean =>
  wait?.for === 'plugin' || (wasAway && record.status === 'running');

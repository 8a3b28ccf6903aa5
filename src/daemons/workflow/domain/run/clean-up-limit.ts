import type { Clock } from '../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import type { StepPart } from './run-parts.ts';

/** Stored times of the clean-up limit of a run or job. */
export interface LimitTimes {
  endingAt: number | null;
  endingHeldAt: number | null;
}

/** Waits that pause the clean-up timer. `others`: an operator's decision, children being cancelled, or a queue. */
export type Hold = 'plugin' | 'others' | null;

export interface CleanUpLimitDeps {
  clock: Clock;
  deadlines: Deadlines;
  limitMs: number;
  /** Maximum wait for a plugin, in ms. */
  maxPluginWaitMs: number;
}

/** Time limit of clean-ups. It is stored, and paused while a clean-up is held up. @spec docs/decisions/0170 */
export class CleanUpLimit {
  readonly limitMs: number;
  readonly maxPluginWaitMs: number;
  readonly #deps: Pick<CleanUpLimitDeps, 'clock' | 'deadlines'>;
  readonly #over = new WeakSet<LimitTimes>();
  readonly #holds = new WeakMap<LimitTimes, Hold>();

  constructor(deps: CleanUpLimitDeps) {
    this.#deps = deps;
    this.limitMs = deps.limitMs;
    this.maxPluginWaitMs = deps.maxPluginWaitMs;
  }

  /** Whether the limit has passed. Stays true when the clock is set back. */
  isOver(times: LimitTimes, hold: Hold): boolean {
    if (!this.#over.has(times) && this.#isPast(times, hold)) this.#over.add(times);
    return this.#over.has(times);
  }

  /** Returns when the limit passes if nothing changes; null when it has not started, is paused or has passed. */
  endsAt(times: LimitTimes, hold: Hold): number | null {
    const { endingAt, endingHeldAt } = times;
    if (endingAt === null || this.#over.has(times)) return null;
    if (endingHeldAt === null) return endingAt + this.limitMs;
    return hold === 'plugin' ? endingHeldAt + this.maxPluginWaitMs : null;
  }

  /** Starts, pauses or resumes the timer. True when the stored times changed. */
  count(times: LimitTimes, hold: Hold): boolean {
    if (this.#over.has(times)) return false;
    const now = this.#deps.clock.now();
    const { endingAt, endingHeldAt } = times;
    const isOtherHold = hold !== (this.#holds.get(times) ?? hold);
    this.#holds.set(times, hold);
    if (endingAt === null) times.endingAt = now;
    else if (endingHeldAt !== null && (hold === null || isOtherHold))
      times.endingAt = endingAt + Math.max(0, now - endingHeldAt);
    if (hold === null) times.endingHeldAt = null;
    else if (endingHeldAt === null || isOtherHold) times.endingHeldAt = now;
    const hasChanged = times.endingAt !== endingAt || times.endingHeldAt !== endingHeldAt;
    if (hasChanged && hold === null) this.#deps.deadlines.note(times.endingAt! + this.limitMs);
    return hasChanged;
  }

  #isPast(times: LimitTimes, hold: Hold): boolean {
    const endsAt = this.endsAt(times, hold);
    return endsAt !== null && this.#deps.deadlines.isPast(endsAt);
  }
}

/** Returns the wait that pauses the clean-up of these steps; null when none does. */
export function holdOf(steps: readonly StepPart[]): Hold {
  if (steps.some((step) => awaitsOthers(step) || isQueued(step))) return 'others';
  return steps.some(awaitsPlugin) ? 'plugin' : null;
}

/** Excludes children started by the clean-up itself: their time counts towards its limit. */
const awaitsOthers = ({ wait, stopped }: StepPart): boolean =>
  wait?.for === 'decision' || (wait?.for === 'child' && stopped !== null);

/** Whether the step is queued for a slot or for a process of its plugin. */
const isQueued = ({ slot, abort, record, step, wasAway }: StepPart): boolean =>
  slot === 'asked' ||
  (abort !== null && record.attemptAt === null && step.kind.reportsBegin === true && !wasAway);

/** Whether the step waits for its plugin, or retries it after such a wait. */
const awaitsPlugin = ({ wait, wasAway, record }: StepPart): boolean =>
  wait?.for === 'plugin' || (wasAway && record.status === 'running');

import type { Clock } from '../../../../kit/clock.ts';
import type { Deadlines } from '../../../../kit/deadlines.ts';
import type { StepPart } from './run-parts.ts';

/** The stored times of one limit: of a run, or of a job. */
export interface LimitTimes {
  endingAt: number | null;
  endingHeldAt: number | null;
}

/** What a clean-up waits for that takes none of its time; `others`: an operator, children that are being ended, or its turn. */
export type Hold = 'plugin' | 'others' | null;

export interface CleanUpLimitDeps {
  clock: Clock;
  deadlines: Deadlines;
  limitMs: number;
  /** The longest wait for a plugin. */
  maxPluginWaitMs: number;
}

/**
 * The time limit of clean-ups. It is stored, and stands still while a clean-up is held up by others.
 * @spec docs/decisions/0170
 */
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

  /** Whether the clean-up has taken all of its time. That stays so, wherever the clock is set. */
  isOver(times: LimitTimes, hold: Hold): boolean {
    if (!this.#over.has(times) && this.#isPast(times, hold)) this.#over.add(times);
    return this.#over.has(times);
  }

  /** When the limit passes if nothing changes; null: it does not, or it has passed. */
  endsAt(times: LimitTimes, hold: Hold): number | null {
    const { endingAt, endingHeldAt } = times;
    if (endingAt === null || this.#over.has(times)) return null;
    if (endingHeldAt === null) return endingAt + this.limitMs;
    return hold === 'plugin' ? endingHeldAt + this.maxPluginWaitMs : null;
  }

  /** Begins, stops and resumes the count. True when the times have changed. */
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

/** Whether one of the steps is held up. */
export function holdOf(steps: readonly StepPart[]): Hold {
  if (steps.some((step) => awaitsOthers(step) || isQueued(step))) return 'others';
  return steps.some(awaitsPlugin) ? 'plugin' : null;
}

/** A child that the clean-up itself has started is a part of it. */
const awaitsOthers = ({ wait, stopped }: StepPart): boolean =>
  wait?.for === 'decision' || (wait?.for === 'child' && stopped !== null);

/** For a slot, or for a process of its plugin. */
const isQueued = ({ slot, abort, record, step, wasAway }: StepPart): boolean =>
  slot === 'asked' ||
  (abort !== null && record.attemptAt === null && step.kind.reportsBegin === true && !wasAway);

/** Also while it is tried whether the plugin is back. */
const awaitsPlugin = ({ wait, wasAway, record }: StepPart): boolean =>
  wait?.for === 'plugin' || (wasAway && record.status === 'running');

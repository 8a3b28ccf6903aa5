import { createBoundedCache } from '../data/bounded-cache.ts';
import type { Clock } from './clock.ts';
import { hours } from './duration.ts';

/** Maximum length of a wait that has a monotonic deadline. Longer waits use the wall clock only. */
export const MAX_SHORT_WAIT_MS = hours(1);
const MAX_DEADLINES = 10_000;

/**
 * Ends short waits on time even if the wall clock is set back. Applies only to waits that this process began. After a
 * restart, the stored wall-clock deadline applies. @spec docs/decisions/0025
 */
export interface Deadlines {
  /** Records the wall-clock deadline `at` of a wait that begins now, and returns `at`. */
  note(at: number): number;
  isPast(at: number): boolean;
  /** Returns the remaining time until `at` in ms, or 0 if `at` has passed. */
  leftMs(at: number): number;
}

export function createDeadlines(clock: Clock): Deadlines {
  /**
   * Monotonic deadlines, keyed by wall-clock deadline. Waits with the same wall-clock deadline share the latest
   * monotonic deadline.
   */
  const ends = createBoundedCache<number>(MAX_DEADLINES);

  function leftMs(at: number): number {
    const byWallClock = at - clock.now();
    if (byWallClock <= 0) return 0;
    const end = ends.get(String(at));
    return end === undefined ? byWallClock : Math.max(0, Math.min(byWallClock, end - clock.monotonic()));
  }

  return {
    note(at) {
      const ms = at - clock.now();
      if (ms <= 0 || ms > MAX_SHORT_WAIT_MS) return at;
      const key = String(at);
      ends.set(key, Math.max(clock.monotonic() + ms, ends.get(key) ?? 0));
      return at;
    },
    isPast: (at) => leftMs(at) === 0,
    leftMs,
  };
}

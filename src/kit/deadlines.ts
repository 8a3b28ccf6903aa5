import { createBoundedCache } from './bounded-cache.ts';
import type { Clock } from './clock.ts';
import { hours } from './duration.ts';

/** Longer waits end by the wall clock alone. */
export const MAX_SHORT_WAIT_MS = hours(1);
const MAX_DEADLINES = 10_000;

/**
 * Ends short waits in time although their end is stored as wall-clock time and that clock is set back. Only waits that this
 * process began are known; a wait read back after a restart ends by the wall clock. @spec docs/decisions/0025
 */
export interface Deadlines {
  /** Notes the end of a wait that begins now, as its wall-clock time. Returns it. */
  note(at: number): number;
  isPast(at: number): boolean;
  /** Real ms until then, 0 for what is past. */
  leftMs(at: number): number;
}

export function createDeadlines(clock: Clock): Deadlines {
  /** Monotonic ends by wall-clock end: of two waits with the same one, the later counts. */
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

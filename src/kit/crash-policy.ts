import type { Clock } from './clock.ts';
import { seconds } from './duration.ts';
import type { Random } from './random.ts';

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = seconds(10);
const STABLE_AFTER_MS = seconds(30);
const LOOP_WINDOW_MS = seconds(60);
const LOOP_CRASHES = 5;

/** What to do after a crash: start again in `delayMs`, or give up. */
export type CrashVerdict =
  | { loop: false; delayMs: number }
  | { loop: true; crashes: number; windowMs: number };

export interface CrashPolicy {
  /** `uptimeMs`: how long the process had been ready. */
  crashed(uptimeMs: number): CrashVerdict;
  reset(): void;
}

/** Doubles the pause with each crash in a row, with jitter; five crashes within a minute are a loop. */
export function createCrashPolicy({ clock, random }: { clock: Clock; random: Random }): CrashPolicy {
  let times: number[] = [];
  let inARow = 0;
  return {
    crashed(uptimeMs) {
      const now = clock.now();
      times = [...times.filter((at) => at > now - LOOP_WINDOW_MS), now];
      inARow = uptimeMs >= STABLE_AFTER_MS ? 1 : inARow + 1;
      if (times.length >= LOOP_CRASHES)
        return { loop: true, crashes: times.length, windowMs: LOOP_WINDOW_MS };
      const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (inARow - 1));
      return { loop: false, delayMs: Math.round(ceiling * (0.5 + random.fraction() / 2)) };
    },
    reset() {
      times = [];
      inARow = 0;
    },
  };
}

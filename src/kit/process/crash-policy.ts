import type { Random } from '../security/random.ts';
import type { Clock } from '../time/clock.ts';
import { minutes, seconds } from '../time/duration.ts';

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = seconds(10);
const STABLE_AFTER_MS = seconds(30);
const LOOP_WINDOW_MS = seconds(60);
const LOOP_CRASHES = 5;
const FIRST_LOOP_PAUSE_MS = seconds(30);
const MAX_LOOP_PAUSE_MS = minutes(5);

/**
 * Restart delay after a crash. In a crash loop (`loop`) the delay is long, and the caller can choose not to restart.
 */
export type CrashVerdict =
  | { loop: false; delayMs: number }
  | { loop: true; crashes: number; windowMs: number; delayMs: number };

export interface CrashPolicy {
  /** Records a crash. `uptimeMs` is the time from readiness to the crash. */
  crashed(uptimeMs: number): CrashVerdict;
  reset(): void;
}

/**
 * Creates a restart policy with exponential backoff and jitter. Five crashes within a minute are a crash loop. In a
 * crash loop, the delay starts at 30 s and doubles up to 5 min.
 */
export function createCrashPolicy({ clock, random }: { clock: Clock; random: Random }): CrashPolicy {
  let times: number[] = [];
  let inARow = 0;
  let loops = 0;
  const withJitter = (ceiling: number): number => Math.round(ceiling * (0.5 + random.fraction() / 2));
  return {
    crashed(uptimeMs) {
      const now = clock.monotonic();
      times = [...times.filter((at) => at > now - LOOP_WINDOW_MS), now];
      const wasStable = uptimeMs >= STABLE_AFTER_MS;
      if (wasStable && loops > 0) times = [now];
      if (wasStable) loops = 0;
      inARow = wasStable ? 1 : inARow + 1;
      if (loops > 0 || times.length >= LOOP_CRASHES) {
        const ceiling = Math.min(MAX_LOOP_PAUSE_MS, FIRST_LOOP_PAUSE_MS * 2 ** loops++);
        return { loop: true, crashes: inARow, windowMs: LOOP_WINDOW_MS, delayMs: withJitter(ceiling) };
      }
      return {
        loop: false,
        delayMs: withJitter(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (inARow - 1))),
      };
    },
    reset() {
      times = [];
      inARow = 0;
      loops = 0;
    },
  };
}

import type { Clock } from '../time/clock.ts';

export interface TokenBucket {
  /** Takes `amount` and returns true, or returns false if less is available. */
  take(amount: number): boolean;
  /** Takes `amount` even if less is available. Returns the time in ms until the bucket is no longer in debt. */
  spend(amount: number): number;
}

/** Creates a bucket that allows `perSecond` on average, and bursts of up to `burst`. */
export function createTokenBucket(clock: Clock, perSecond: number, burst: number): TokenBucket {
  let level = burst;
  let at = clock.monotonic();

  function refill(): void {
    const now = clock.monotonic();
    level = Math.min(burst, level + ((now - at) * perSecond) / 1000);
    at = now;
  }
  return {
    take(amount) {
      refill();
      if (level < amount) return false;
      level -= amount;
      return true;
    },
    spend(amount) {
      refill();
      level -= amount;
      return level >= 0 ? 0 : Math.ceil((-level / perSecond) * 1000);
    },
  };
}

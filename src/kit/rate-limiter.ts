import type { Clock } from './clock.ts';

export interface RateVerdict {
  allowed: boolean;
  /** Calls left in this window. */
  remaining: number;
  /** Milliseconds until the window ends. */
  resetMs: number;
}

export interface RateLimiter {
  /** Counts one call for `key` against `limit` calls a window. */
  take(key: string, limit: number): RateVerdict;
  /** What `take` would say, without counting. */
  peek(key: string, limit: number): RateVerdict;
  /** Takes one counted call back: it turned out not to be of the kind that is limited. */
  giveBack(key: string): void;
}

/**
 * Counts calls by key in windows that begin with a key's first call. Synchronous and on our clock.
 * Memory is bounded by two generations of maps: a generation lives one window, so an entry of the one
 * before the last has run out and goes with its map; nothing is evicted key by key.
 */
export function createRateLimiter(clock: Clock, windowMs: number): RateLimiter {
  type Window = { count: number; endsAt: number };
  let young = new Map<string, Window>();
  let old = new Map<string, Window>();
  let turnAt = clock.now() + windowMs;

  function find(key: string, now: number): Window | undefined {
    if (now >= turnAt || now < turnAt - windowMs) {
      // Also after a clock that jumped back: no window outlives the jump by more than its length.
      old = now >= turnAt && now < turnAt + windowMs ? young : new Map();
      young = new Map();
      turnAt = now + windowMs;
    }
    const window = young.get(key) ?? old.get(key);
    return window && window.endsAt > now && window.endsAt <= now + windowMs ? window : undefined;
  }

  return {
    take(key, limit) {
      const now = clock.now();
      let window = find(key, now);
      if (!window) {
        window = { count: 0, endsAt: now + windowMs };
        young.set(key, window);
      }
      const allowed = window.count < limit;
      if (allowed) window.count++;
      return { allowed, remaining: Math.max(0, limit - window.count), resetMs: window.endsAt - now };
    },
    peek(key, limit) {
      const now = clock.now();
      const { count, endsAt } = find(key, now) ?? { count: 0, endsAt: now + windowMs };
      return { allowed: count < limit, remaining: Math.max(0, limit - count), resetMs: endsAt - now };
    },
    giveBack(key) {
      const window = find(key, clock.now());
      if (window && window.count > 0) window.count--;
    },
  };
}

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

/** A limit that several processes may count together: then a verdict may have to be asked for. */
export interface SharedLimiter extends Omit<RateLimiter, 'take'> {
  /** Rejects with SERVICE_UNAVAILABLE when the process that counts is gone. */
  take(key: string, limit: number): RateVerdict | Promise<RateVerdict>;
}

export interface LimiterOptions {
  windowMs: number;
  /** Never lent to other processes in advance, and known to all once reached: for `peek`, and for few and costly calls. */
  exact?: boolean;
}

/** The limiter of that name: one for all processes of a daemon. */
export type CreateLimiter = (name: string, options: LimiterOptions) => SharedLimiter;

/** Limiters of a daemon that is one process. */
export function localLimiters(clock: Clock): CreateLimiter {
  return (_name, { windowMs }) => createRateLimiter(clock, windowMs);
}

/** What a key has until its window ends. */
export interface Window {
  endsAt: number;
}

export interface Windows<W extends Window> {
  /** The key's window, unless it has ended. */
  find(key: string, now: number): W | undefined;
  set(key: string, window: W): void;
}

/**
 * Windows by key. Memory is bounded by two generations of maps: a generation lives one window, so an entry of the one
 * before the last has run out and goes with its map; nothing is evicted key by key.
 */
export function createWindows<W extends Window>(clock: Clock, windowMs: number): Windows<W> {
  let young = new Map<string, W>();
  let old = new Map<string, W>();
  let turnAt = clock.now() + windowMs;
  return {
    find(key, now) {
      if (now >= turnAt || now < turnAt - windowMs) {
        // Also after a clock that jumped back: no window outlives the jump by more than its length.
        old = now >= turnAt && now < turnAt + windowMs ? young : new Map();
        young = new Map();
        turnAt = now + windowMs;
      }
      const window = young.get(key) ?? old.get(key);
      return window && window.endsAt > now && window.endsAt <= now + windowMs ? window : undefined;
    },
    set: (key, window) => young.set(key, window),
  };
}

/** Counts calls by key in windows that begin with a key's first call. Synchronous and on our clock. */
export function createRateLimiter(clock: Clock, windowMs: number): RateLimiter {
  const windows = createWindows<Window & { count: number }>(clock, windowMs);

  return {
    take(key, limit) {
      const now = clock.now();
      let window = windows.find(key, now);
      if (!window) {
        window = { count: 0, endsAt: now + windowMs };
        windows.set(key, window);
      }
      const allowed = window.count < limit;
      if (allowed) window.count++;
      return { allowed, remaining: Math.max(0, limit - window.count), resetMs: window.endsAt - now };
    },
    peek(key, limit) {
      const now = clock.now();
      const { count, endsAt } = windows.find(key, now) ?? { count: 0, endsAt: now + windowMs };
      return { allowed: count < limit, remaining: Math.max(0, limit - count), resetMs: endsAt - now };
    },
    giveBack(key) {
      const window = windows.find(key, clock.now());
      if (window && window.count > 0) window.count--;
    },
  };
}

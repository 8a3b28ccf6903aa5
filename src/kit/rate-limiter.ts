import type { Clock } from './clock.ts';

export interface RateVerdict {
  allowed: boolean;
  /** Calls left now. */
  remaining: number;
  /** Milliseconds until the oldest of the counted calls expires: of a refused caller, until another call may come. */
  resetMs: number;
}

export interface RateLimiter {
  /** Counts one call for `key` against `limit` calls in any window. */
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
  /** Keys counted apart at a time, where clients choose them; further ones share one count. Default: no limit. */
  maxKeys?: number;
}

/** The limiter of that name: one for all processes of a daemon. */
export type CreateLimiter = (name: string, options: LimiterOptions) => SharedLimiter;

/** Limiters of a daemon that is one process. */
export function localLimiters(clock: Clock): CreateLimiter {
  return (_name, { windowMs, maxKeys }) => createRateLimiter(clock, windowMs, maxKeys);
}

/** What a process knows of a key until then. */
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
  let turnAt = clock.monotonic() + windowMs;
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

/** Calls gathered together: all count until the last of them expires. */
interface Slice {
  since: number;
  last: number;
  count: number;
}

/** Slices of a window: what bounds the memory of a busy key. A call counts at most this share of a window too long. */
const SLICES = 60;

/** Counts the calls of the last window: in no window, wherever it begins, are there more than were let through. */
export class SlidingCount {
  readonly #windowMs: number;
  readonly #slices: Slice[] = [];
  #total = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  total(now: number): number {
    this.#expire(now);
    return this.#total;
  }

  add(calls: number, now: number): void {
    this.#expire(now);
    this.#total += calls;
    const newest = this.#slices.at(-1);
    if (newest && now - newest.since < this.#windowMs / SLICES) {
      newest.count += calls;
      newest.last = now;
    } else this.#slices.push({ since: now, last: now, count: calls });
  }

  /** Takes calls back that were counted at `at`, default: the latest. Those that have expired are gone already. */
  remove(calls: number, at = Number.POSITIVE_INFINITY): void {
    const slice = this.#slices.findLast(({ since }) => since <= at);
    if (!slice || (at !== Number.POSITIVE_INFINITY && at > slice.last)) return;
    const removed = Math.min(calls, slice.count);
    slice.count -= removed;
    this.#total -= removed;
  }

  /** Milliseconds until a call expires; a window where there is none. */
  freesIn(now: number): number {
    const oldest = this.#slices.find(({ count }) => count > 0);
    return oldest ? oldest.last + this.#windowMs - now : this.#windowMs;
  }

  #expire(now: number): void {
    const slices = this.#slices;
    while (slices.length > 0 && slices[0]!.last + this.#windowMs <= now) this.#total -= slices.shift()!.count;
    // The clock went back: nothing counts for longer than a window.
    while (slices.length > 0 && slices.at(-1)!.last > now) this.#total -= slices.pop()!.count;
  }
}

/** Counts by key; an entry that nothing touched for a window may be gone. */
export interface Counts<Entry> {
  find(key: string): Entry | undefined;
  open(key: string): Entry;
}

/** The key of all that come when `maxKeys` are counted. */
const SHARED_KEY = '';

/** Two generations of maps, of a window each: what is touched moves to the young one, and the old one goes as a whole. */
export function createCounts<Entry>(
  clock: Clock,
  windowMs: number,
  create: () => Entry,
  maxKeys = Number.POSITIVE_INFINITY,
): Counts<Entry> {
  let young = new Map<string, Entry>();
  let old = new Map<string, Entry>();
  let turnAt = clock.monotonic() + windowMs;

  function turn(): void {
    const now = clock.monotonic();
    if (now < turnAt && now >= turnAt - windowMs) return;
    old = now >= turnAt && now < turnAt + windowMs ? young : new Map();
    young = new Map();
    turnAt = now + windowMs;
  }

  function find(key: string): Entry | undefined {
    turn();
    const entry = young.get(key) ?? old.get(key);
    if (entry && !young.has(key) && young.size < maxKeys) young.set(key, entry);
    if (entry || key === SHARED_KEY || young.size < maxKeys) return entry;
    return find(SHARED_KEY);
  }

  return {
    find,
    open(key) {
      const found = find(key);
      if (found) return found;
      const entry = create();
      young.set(young.size < maxKeys ? key : SHARED_KEY, entry);
      return entry;
    },
  };
}

/** Counts calls by key in a sliding window. Synchronous and on our clock. */
export function createRateLimiter(clock: Clock, windowMs: number, maxKeys?: number): RateLimiter {
  const counts = createCounts(clock, windowMs, () => new SlidingCount(windowMs), maxKeys);
  const verdict = (count: SlidingCount, limit: number, allowed: boolean, now: number): RateVerdict => ({
    allowed,
    remaining: Math.max(0, limit - count.total(now)),
    resetMs: count.freesIn(now),
  });
  return {
    take(key, limit) {
      const now = clock.monotonic();
      const count = counts.open(key);
      const allowed = count.total(now) < limit;
      if (allowed) count.add(1, now);
      return verdict(count, limit, allowed, now);
    },
    peek(key, limit) {
      const now = clock.monotonic();
      const count = counts.find(key);
      if (!count) return { allowed: limit > 0, remaining: limit, resetMs: windowMs };
      return verdict(count, limit, count.total(now) < limit, now);
    },
    giveBack(key) {
      counts.find(key)?.remove(1);
    },
  };
}

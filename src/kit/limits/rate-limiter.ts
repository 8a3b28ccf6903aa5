import type { Clock } from '../time/clock.ts';

export interface RateVerdict {
  allowed: boolean;
  remaining: number;
  /** Time until the oldest counted call expires, in ms. A rejected caller can retry after this time. */
  resetMs: number;
}

export interface RateLimiter {
  /** Counts a call for `key`, unless `limit` calls are already counted in the current window. */
  take(key: string, limit: number): RateVerdict;
  /** Returns the result that `take` would return, without counting a call. */
  peek(key: string, limit: number): RateVerdict;
  /** Removes a call that `take` has counted but that must not count against the limit. */
  giveBack(key: string): void;
}

/** A rate limiter whose counts can be shared by several processes. With shared counts, `take` can return a promise. */
export interface SharedLimiter extends Omit<RateLimiter, 'take'> {
  take(key: string, limit: number): RateVerdict | Promise<RateVerdict>;
}

export interface LimiterOptions {
  windowMs: number;
  /**
   * Maximum number of keys with separate counts. All further keys share one count. A maximum is needed if clients
   * choose the keys.
   */
  maxKeys?: number;
}

/** Creates the limiter named `name`, which all processes of a service share. */
export type CreateLimiter = (name: string, options: LimiterOptions) => SharedLimiter;

/** Creates limiters for a service with a single process. */
export function localLimiters(clock: Clock): CreateLimiter {
  return (_name, { windowMs, maxKeys }) => createRateLimiter(clock, windowMs, maxKeys);
}

/** A group of consecutive calls, which are counted until the latest of them expires. */
interface Slice {
  since: number;
  last: number;
  count: number;
}

/**
 * Maximum number of call groups per window, which limits the memory per key. A call can be counted for up to 1/60 of a
 * window too long.
 */
const SLICES = 60;

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

  /**
   * Removes up to `calls` calls from the group recorded at time `at`. By default, removes the latest calls. Expired
   * calls are ignored.
   */
  remove(calls: number, at = Number.POSITIVE_INFINITY): void {
    const slice = this.#slices.findLast(({ since }) => since <= at);
    if (!slice || (at !== Number.POSITIVE_INFINITY && at > slice.last)) return;
    const removed = Math.min(calls, slice.count);
    slice.count -= removed;
    this.#total -= removed;
  }

  /**
   * Returns the time in ms until the oldest group of calls expires. Returns the window length if no call is counted.
   */
  freesIn(now: number): number {
    const oldest = this.#slices.find(({ count }) => count > 0);
    return oldest ? oldest.last + this.#windowMs - now : this.#windowMs;
  }

  #expire(now: number): void {
    const slices = this.#slices;
    while (slices.length > 0 && slices[0]!.last + this.#windowMs <= now) this.#total -= slices.shift()!.count;
    // If the clock was set back, some calls have a future time. These calls are removed, because they would be counted
    // for too long.
    while (slices.length > 0 && slices.at(-1)!.last > now) this.#total -= slices.pop()!.count;
  }
}

/** Counts by key. Entries without access for one window can be evicted. */
export interface Counts<Entry> {
  find(key: string): Entry | undefined;
  open(key: string): Entry;
}

/** Key of the count that all keys beyond `maxKeys` share. */
const SHARED_KEY = '';

/**
 * Creates a store for counts. The store has a young and an old map, which rotate once per window. An access moves an
 * entry to the young map.
 */
export function createCounts<Entry>(
  clock: Clock,
  windowMs: number,
  create: () => Entry,
  maxKeys = Number.POSITIVE_INFINITY,
): Counts<Entry> {
  let young = new Map<string, Entry>();
  let old = new Map<string, Entry>();
  let rotateAt = clock.monotonic() + windowMs;

  function rotate(): void {
    const now = clock.monotonic();
    if (now < rotateAt && now >= rotateAt - windowMs) return;
    old = now >= rotateAt && now < rotateAt + windowMs ? young : new Map();
    young = new Map();
    rotateAt = now + windowMs;
  }

  function find(key: string): Entry | undefined {
    rotate();
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

/** Creates a rate limiter that counts calls by key in a sliding window, within this process. */
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

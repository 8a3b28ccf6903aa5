import type { Clock } from '../time/clock.ts';

export interface RateVerdict {
  allowed: boolean;
  remaining: number;
  /** Time in ms until the oldest counted call expires. After that time, a rejected caller may succeed. */
  resetMs: number;
}

export interface RateLimiter {
  /** Counts one call for `key` against `limit` calls in any window. */
  take(key: string, limit: number): RateVerdict;
  /** Returns the verdict of `take` without counting. */
  peek(key: string, limit: number): RateVerdict;
  /** Undoes `take` for a call to which the limit does not apply after all. */
  giveBack(key: string): void;
}

/** A rate limiter whose count may be shared by several processes. In that case `take` returns a promise. */
export interface SharedLimiter extends Omit<RateLimiter, 'take'> {
  take(key: string, limit: number): RateVerdict | Promise<RateVerdict>;
}

export interface LimiterOptions {
  windowMs: number;
  /**
   * Maximum number of keys with separate counts. It is needed if clients choose the keys. All further keys share one
   * count.
   */
  maxKeys?: number;
}

/** Creates the limiter with this name, shared by all processes of a service. */
export type CreateLimiter = (name: string, options: LimiterOptions) => SharedLimiter;

/** Creates limiters for a service with a single process. */
export function localLimiters(clock: Clock): CreateLimiter {
  return (_name, { windowMs, maxKeys }) => createRateLimiter(clock, windowMs, maxKeys);
}

/** A group of consecutive calls that is counted until its latest call expires. */
interface Slice {
  since: number;
  last: number;
  count: number;
}

/** Number of groups per window, which bounds the memory per key. A call may count 1/60 of a window too long. */
const SLICES = 60;

/** Counts calls in a sliding window. */
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

  /** Removes calls recorded at `at`, or by default the latest calls. Has no effect on calls that have expired. */
  remove(calls: number, at = Number.POSITIVE_INFINITY): void {
    const slice = this.#slices.findLast(({ since }) => since <= at);
    if (!slice || (at !== Number.POSITIVE_INFINITY && at > slice.last)) return;
    const removed = Math.min(calls, slice.count);
    slice.count -= removed;
    this.#total -= removed;
  }

  /** Returns the time in ms until the oldest call expires, or the window length if no call is counted. */
  freesIn(now: number): number {
    const oldest = this.#slices.find(({ count }) => count > 0);
    return oldest ? oldest.last + this.#windowMs - now : this.#windowMs;
  }

  #expire(now: number): void {
    const slices = this.#slices;
    while (slices.length > 0 && slices[0]!.last + this.#windowMs <= now) this.#total -= slices.shift()!.count;
    // After the clock was set backwards, calls with a future time exist. They are removed, because they would count for
    // too long.
    while (slices.length > 0 && slices.at(-1)!.last > now) this.#total -= slices.pop()!.count;
  }
}

/** Counts by key. An entry that is not accessed for one window may be removed. */
export interface Counts<Entry> {
  find(key: string): Entry | undefined;
  open(key: string): Entry;
}

/** Key shared by all callers beyond `maxKeys`. */
const SHARED_KEY = '';

/** Stores counts in a young and an old map, which rotate once per window. An access moves an entry to the young map. */
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

import type { Clock } from '../time/clock.ts';

export interface RateVerdict {
  allowed: boolean;
  /** Number of calls that are still allowed now. */
  remaining: number;
  /** Ms until the oldest counted call expires: for a rejected caller, until the next call may succeed. */
  resetMs: number;
}

export interface RateLimiter {
  /** Counts one call for `key` against `limit` calls in any window. */
  take(key: string, limit: number): RateVerdict;
  /** Returns the verdict of `take` without counting. */
  peek(key: string, limit: number): RateVerdict;
  /** Uncounts one call that turned out not to be subject to the limit. */
  giveBack(key: string): void;
}

/** A limit that several processes may count together, so that a verdict may be asynchronous. */
export interface SharedLimiter extends Omit<RateLimiter, 'take'> {
  /** Rejects with SERVICE_UNAVAILABLE if the counting process is gone. */
  take(key: string, limit: number): RateVerdict | Promise<RateVerdict>;
}

export interface LimiterOptions {
  windowMs: number;
  /**
   * When true, the limit is never leased to other processes; all of them learn when it is reached. For `peek` and for
   * rare, costly calls.
   */
  exact?: boolean;
  /** Max keys counted separately, where clients choose them; further keys share one count. Default: unlimited. */
  maxKeys?: number;
}

/** Creates the limiter with this name, shared by all processes of a service. */
export type CreateLimiter = (name: string, options: LimiterOptions) => SharedLimiter;

/** Creates limiters for a service with a single process. */
export function localLimiters(clock: Clock): CreateLimiter {
  return (_name, { windowMs, maxKeys }) => createRateLimiter(clock, windowMs, maxKeys);
}

/** Counting state of a key, valid until `endsAt`. */
export interface Window {
  endsAt: number;
}

export interface Windows<W extends Window> {
  /** Returns the key's window, or undefined if it has ended. */
  find(key: string, now: number): W | undefined;
  set(key: string, window: W): void;
}

/**
 * Windows by key, in two generations of maps. A generation lives for one window, so all entries of the old map have
 * expired when it is dropped; no key is evicted individually.
 */
export function createWindows<W extends Window>(clock: Clock, windowMs: number): Windows<W> {
  let young = new Map<string, W>();
  let old = new Map<string, W>();
  let rotateAt = clock.monotonic() + windowMs;
  return {
    find(key, now) {
      if (now >= rotateAt || now < rotateAt - windowMs) {
        // Rotates also if the clock jumped back, so that no window outlives the jump by more than its length.
        old = now >= rotateAt && now < rotateAt + windowMs ? young : new Map();
        young = new Map();
        rotateAt = now + windowMs;
      }
      const window = young.get(key) ?? old.get(key);
      return window && window.endsAt > now && window.endsAt <= now + windowMs ? window : undefined;
    },
    set: (key, window) => young.set(key, window),
  };
}

/** Calls that are counted together and expire when the last one does. */
interface Slice {
  since: number;
  last: number;
  count: number;
}

/** Slices per window, to bound the memory of a busy key. A call counts for at most 1/60 of a window too long. */
const SLICES = 60;

/** Sliding window count: no window, wherever it begins, contains more calls than were allowed. */
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
   * Uncounts calls recorded at `at`, by default the latest ones. Expired calls are no longer counted, so nothing
   * changes.
   */
  remove(calls: number, at = Number.POSITIVE_INFINITY): void {
    const slice = this.#slices.findLast(({ since }) => since <= at);
    if (!slice || (at !== Number.POSITIVE_INFINITY && at > slice.last)) return;
    const removed = Math.min(calls, slice.count);
    slice.count -= removed;
    this.#total -= removed;
  }

  /** Returns the ms until a call expires; a whole window if no call is counted. */
  freesIn(now: number): number {
    const oldest = this.#slices.find(({ count }) => count > 0);
    return oldest ? oldest.last + this.#windowMs - now : this.#windowMs;
  }

  #expire(now: number): void {
    const slices = this.#slices;
    while (slices.length > 0 && slices[0]!.last + this.#windowMs <= now) this.#total -= slices.shift()!.count;
    // After the clock was set back, no call counts for longer than a window.
    while (slices.length > 0 && slices.at(-1)!.last > now) this.#total -= slices.pop()!.count;
  }
}

/** Counts by key. An entry untouched for a window may be dropped. */
export interface Counts<Entry> {
  find(key: string): Entry | undefined;
  open(key: string): Entry;
}

/** Key shared by all callers beyond `maxKeys`. */
const SHARED_KEY = '';

/** Two generations of maps, rotated every window: an access moves an entry to the young map, and the old map is dropped. */
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

/** Counts calls by key in a sliding window. Synchronous, on the injected clock. */
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

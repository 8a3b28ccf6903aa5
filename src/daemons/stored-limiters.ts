import {
  type Counts,
  type CreateLimiter,
  createCounts,
  type LimiterOptions,
  type RateVerdict,
  type SharedLimiter,
  SlidingCount,
} from '../kit/limits/rate-limiter.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { RateCounters } from '../store/ports/index.ts';

/**
 * Time for which a response of the store is reused, in ms. During this time, a rejected key is rejected again without a
 * request to the store.
 */
const KNOWN_FOR_MS = 250;

interface StoredLimitersDeps {
  counters: RateCounters;
  /** Name of the service. The key of each counter contains this name, because all services share the store. */
  service: string;
  clock: Clock;
  logger: Logger;
}

interface Waiter {
  resolve(verdict: RateVerdict): void;
}

interface Count {
  /** Calls that this process has counted. This count applies while the store cannot be reached. */
  local: SlidingCount;
  /** Calls that wait for the request in flight to finish. */
  waiters: Waiter[];
  isAsking: boolean;
  /**
   * Latest response of the store. The response becomes outdated at `until`. The oldest call expires at `freesAt`. Both
   * times are in monotonic ms.
   */
  known: { left: number; until: number; freesAt: number } | undefined;
}

/**
 * Rate limits across all processes, counted in a shared store. While the store cannot be reached, each process counts
 * its own calls.
 */
export function storedLimiters(deps: StoredLimitersDeps): CreateLimiter {
  const limiters = new Map<string, StoredLimiter>();
  return (name, options) => {
    const limiter = limiters.get(name) ?? new StoredLimiter(deps, name, options);
    limiters.set(name, limiter);
    return limiter;
  };
}

class StoredLimiter implements SharedLimiter {
  readonly #deps: StoredLimitersDeps;
  readonly #name: string;
  readonly #windowMs: number;
  readonly #counts: Counts<Count>;
  #isAway = false;

  constructor(deps: StoredLimitersDeps, name: string, { windowMs, maxKeys }: LimiterOptions) {
    this.#deps = deps;
    this.#name = name;
    this.#windowMs = windowMs;
    this.#counts = createCounts<Count>(
      deps.clock,
      windowMs,
      () => ({ local: new SlidingCount(windowMs), waiters: [], isAsking: false, known: undefined }),
      maxKeys,
    );
  }

  take(key: string, limit: number): RateVerdict | Promise<RateVerdict> {
    const count = this.#counts.open(key);
    const known = this.#known(count);
    if (known?.left === 0) return this.#verdict(false, known);
    return new Promise((resolve) => {
      count.waiters.push({ resolve });
      if (!count.isAsking) void this.#serve(this.#stored(key, count), count, limit);
    });
  }

  /**
   * Returns a verdict from the latest response of the store. Returns the full limit without such a response, or after
   * the oldest counted call has expired. Requests an update in the background if the response is outdated.
   */
  peek(key: string, limit: number): RateVerdict {
    const count = this.#counts.open(key);
    const known = this.#known(count);
    if (!known && !count.isAsking) void this.#serve(this.#stored(key, count), count, limit);
    if (!count.known || count.known.freesAt <= this.#now())
      return { allowed: limit > 0, remaining: limit, resetMs: this.#windowMs };
    return this.#verdict(count.known.left > 0, count.known);
  }

  giveBack(key: string): void {
    const count = this.#counts.open(key);
    count.local.remove(1);
    count.known = undefined;
    // If this request to the store fails, the call remains counted until its window ends.
    this.#deps.counters.giveBack(this.#stored(key, count), this.#windowMs).catch(() => {});
  }

  /** Sends requests to the store, one at a time per key. Calls that arrive during a request share the next request. */
  async #serve(stored: string, count: Count, limit: number): Promise<void> {
    count.isAsking = true;
    do {
      const waiters = count.waiters.splice(0);
      const granted = await this.#ask(stored, count, limit, waiters.length);
      const verdict = count.known!;
      for (const [index, { resolve }] of waiters.entries()) {
        const left = verdict.left + Math.max(0, granted - index - 1);
        resolve(this.#verdict(index < granted, { ...verdict, left }));
      }
    } while (count.waiters.length > 0);
    count.isAsking = false;
  }

  async #ask(stored: string, count: Count, limit: number, calls: number): Promise<number> {
    const { counters, logger } = this.#deps;
    try {
      const grant = await counters.take(stored, { limit, windowMs: this.#windowMs, calls });
      this.#isAway = false;
      this.#learn(count, grant.left, grant.freesInMs);
      count.local.add(grant.granted, this.#now());
      return grant.granted;
    } catch (error) {
      if (!this.#isAway)
        logger.warn(`The rate limit '${this.#name}' is counted per process until its store is back`, {
          error,
        });
      this.#isAway = true;
      return this.#countHere(count, limit, calls);
    }
  }

  #countHere(count: Count, limit: number, calls: number): number {
    const now = this.#now();
    const granted = Math.max(0, Math.min(calls, limit - count.local.total(now)));
    if (granted > 0) count.local.add(granted, now);
    this.#learn(count, Math.max(0, limit - count.local.total(now)), count.local.freesIn(now));
    return granted;
  }

  #learn(count: Count, left: number, freesInMs: number): void {
    const now = this.#now();
    count.known = { left, until: now + Math.min(KNOWN_FOR_MS, freesInMs), freesAt: now + freesInMs };
  }

  #known({ known }: Count): Count['known'] {
    return known && this.#now() < known.until ? known : undefined;
  }

  #verdict(allowed: boolean, { left, freesAt }: { left: number; freesAt: number }): RateVerdict {
    return { allowed, remaining: left, resetMs: Math.max(0, freesAt - this.#now()) };
  }

  /** Returns the key under which the store counts calls. All keys beyond `maxKeys` share one count. */
  #stored(key: string, count: Count): string {
    const own = this.#counts.find('') === count ? '' : key;
    return JSON.stringify([this.#deps.service, this.#name, own]);
  }

  #now(): number {
    return this.#deps.clock.monotonic();
  }
}

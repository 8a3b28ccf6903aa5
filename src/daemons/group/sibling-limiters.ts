import type { PlatformError } from '../../kit/errors/errors.ts';
import {
  type CreateLimiter,
  createWindows,
  type LimiterOptions,
  type RateVerdict,
  type SharedLimiter,
  type Window,
  type Windows,
} from '../../kit/limits/rate-limiter.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type {
  BackQuestion,
  FullQuestion,
  RecallQuestion,
  TakeAnswer,
  TakeQuestion,
} from './limiter-protocol.ts';
import { createNamedLimiters, verdictOf } from './named-limiters.ts';
import type { SiblingProcess } from './process-group.ts';

/**
 * Time in ms for which a rejected key is rejected again without a request to the primary. Limits the messages between
 * processes during a flood of calls.
 */
const REFUSED_FOR_MS = 250;
/**
 * Loans expire after this share of the window. The primary counts lent permits at the time of the loan, so the permits
 * of an old loan would leave the window too early.
 */
const LOAN_SHARE = 1 / 60;

interface Lease extends Window {
  /** Permits that can be used until `usableUntil` without asking the primary. */
  remaining: number;
  usableUntil: number;
  /**
   * Time at which the primary counted the permits. `freesAt` is the time at which the oldest counted call leaves the
   * window.
   */
  countedAt: number;
  freesAt: number;
  /** Number of permits that the primary had left after this loan. */
  left: number;
  /** Time until which calls are rejected without a request to the primary. */
  refusedUntil: number;
}

interface Waiter {
  resolve(verdict: RateVerdict): void;
  reject(error: PlatformError): void;
}

/** Creates the limiters of a sibling process, which borrow permits from the primary. */
export function siblingLimiters(group: SiblingProcess, clock: Clock): CreateLimiter {
  const limiters = createNamedLimiters((name, options) => new SiblingLimiter(group, clock, name, options));
  group.answer(
    'limit.recall',
    limiters.answer((limiter, question: RecallQuestion) => limiter.recall(question), 0),
  );
  group.answer(
    'limit.full',
    limiters.answer((limiter, question: FullQuestion) => limiter.full(question), undefined),
  );
  return limiters.get;
}

/** Counts calls against permits that the primary lends. */
class SiblingLimiter implements SharedLimiter {
  readonly #group: SiblingProcess;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #options: LimiterOptions;
  readonly #leases: Windows<Lease>;
  /** Keys at their limit, as reported by the primary. */
  readonly #fulls: Windows<Window>;
  /** Callers that wait for the answer of the primary, by key. */
  readonly #waiters = new Map<string, Waiter[]>();

  constructor(group: SiblingProcess, clock: Clock, name: string, options: LimiterOptions) {
    this.#group = group;
    this.#clock = clock;
    this.#name = name;
    this.#options = options;
    this.#leases = createWindows<Lease>(clock, options.windowMs);
    this.#fulls = createWindows<Window>(clock, options.windowMs);
  }

  take(key: string, limit: number): RateVerdict | Promise<RateVerdict> {
    const now = this.#clock.monotonic();
    const lease = this.#leases.find(key, now);
    const waiters = this.#waiters.get(key);
    if (lease && lease.remaining > 0 && now < lease.usableUntil && !waiters) {
      lease.remaining--;
      return this.#verdict(true, lease);
    }
    if (lease && now < lease.refusedUntil) return this.#verdict(false, lease);
    return new Promise((resolve, reject) => {
      if (waiters) waiters.push({ resolve, reject });
      else {
        const first = [{ resolve, reject }];
        this.#waiters.set(key, first);
        this.#borrow(key, limit, first);
      }
    });
  }

  /** Returns a verdict without a request to the primary. The primary reports when an exact limit is reached. */
  peek(key: string, limit: number): RateVerdict {
    const now = this.#clock.monotonic();
    const full = this.#fulls.find(key, now);
    if (full) return { allowed: false, remaining: 0, resetMs: full.endsAt - now };
    const lease = this.#leases.find(key, now);
    if (lease && now < lease.refusedUntil) return this.#verdict(false, lease);
    return { allowed: true, remaining: limit, resetMs: this.#options.windowMs };
  }

  giveBack(key: string): void {
    const question: BackQuestion = { name: this.#name, key };
    this.#group.primary.ask('limit.back', question, () => {});
  }

  /** Gives up a loan and returns the number of its unused permits. */
  recall({ key, countedAt }: RecallQuestion): number {
    const lease = this.#leases.find(key, this.#clock.monotonic());
    if (lease?.countedAt !== countedAt) return 0;
    const unused = lease.remaining;
    lease.remaining = 0;
    return unused;
  }

  full({ key, endsAt }: FullQuestion): void {
    this.#fulls.set(key, { endsAt });
  }

  #verdict(allowed: boolean, { remaining, left, freesAt }: Lease): RateVerdict {
    return verdictOf(allowed, remaining + left, freesAt, this.#clock.monotonic());
  }

  #borrow(key: string, limit: number, waiters: Waiter[]): void {
    const { windowMs, exact = false, maxKeys } = this.#options;
    const former = this.#leases.find(key, this.#clock.monotonic());
    const unused = former?.remaining ?? 0;
    if (former) former.remaining = 0;
    const options = maxKeys === undefined ? {} : { maxKeys };
    const about = { name: this.#name, key, limit, windowMs, exact, ...options };
    const question: TakeQuestion = { ...about, want: waiters.length, unused };
    this.#group.primary.ask('limit.take', question, (reply) => {
      if ('error' in reply) {
        this.#waiters.delete(key);
        for (const waiter of waiters) waiter.reject(reply.error);
        return;
      }
      this.#serve(key, this.#leaseOf(reply.body as TakeAnswer), waiters);
      // More calls arrived while the request was in flight.
      if (waiters.length > 0) this.#borrow(key, limit, waiters);
      else this.#waiters.delete(key);
    });
  }

  #leaseOf({ granted, left, countedAt, freesAt }: TakeAnswer): Lease {
    const { windowMs } = this.#options;
    return {
      ...{ remaining: granted, left, countedAt, freesAt },
      usableUntil: countedAt + windowMs * LOAN_SHARE,
      refusedUntil: granted === 0 ? Math.min(freesAt, this.#clock.monotonic() + REFUSED_FOR_MS) : 0,
      endsAt: countedAt + windowMs,
    };
  }

  #serve(key: string, lease: Lease, waiters: Waiter[]): void {
    const isRefused = lease.remaining === 0;
    this.#leases.set(key, lease);
    while (waiters.length > 0 && lease.remaining > 0) {
      lease.remaining--;
      waiters.shift()!.resolve(this.#verdict(true, lease));
    }
    if (isRefused) for (const waiter of waiters.splice(0)) waiter.resolve(this.#verdict(false, lease));
  }
}

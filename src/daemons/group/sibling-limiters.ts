import type { PlatformError } from '../../kit/errors/errors.ts';
import {
  type CreateLimiter,
  createWindows,
  type LimiterOptions,
  type RateVerdict,
  type SharedLimiter,
  type Window,
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
 * A rejected key is rejected without a request to the primary for this long, so that a flood does not become
 * one between processes.
 */
const REFUSED_FOR_MS = 250;
/** Loans expire after this share of the window: their permits were counted when lent. */
const LOAN_SHARE = 1 / 60;

interface Lease extends Window {
  /** Permits that can be used without a request, until `usableUntil`. */
  remaining: number;
  usableUntil: number;
  /** When the primary counted them, and when its oldest counted call expires. */
  countedAt: number;
  freesAt: number;
  /** Permits left at the primary when it lent these. */
  left: number;
  /** Reject without a request until then. */
  refusedUntil: number;
}

interface Waiter {
  resolve(verdict: RateVerdict): void;
  reject(error: PlatformError): void;
}

interface SiblingLimiter extends SharedLimiter {
  recall(question: RecallQuestion): number;
  full(question: FullQuestion): void;
}

/** Limiters of a sibling, which borrows permits from the primary. */
export function siblingLimiters(group: SiblingProcess, clock: Clock): CreateLimiter {
  const limiters = createNamedLimiters((name, options) => createSiblingLimiter(group, clock, name, options));
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

function createSiblingLimiter(
  group: SiblingProcess,
  clock: Clock,
  name: string,
  { windowMs, exact = false, maxKeys }: LimiterOptions,
): SiblingLimiter {
  const leases = createWindows<Lease>(clock, windowMs);
  /** Keys at their limit, as reported by the primary. */
  const fulls = createWindows<Window>(clock, windowMs);
  const asking = new Map<string, Waiter[]>();

  const verdict = (allowed: boolean, { remaining, left, freesAt }: Lease): RateVerdict =>
    verdictOf(allowed, remaining + left, freesAt, clock.monotonic());

  function ask(key: string, limit: number, waiters: Waiter[]): void {
    const former = leases.find(key, clock.monotonic());
    const unused = former?.remaining ?? 0;
    if (former) former.remaining = 0;
    const options = maxKeys === undefined ? {} : { maxKeys };
    const about = { name, key, limit, windowMs, exact, ...options };
    const question: TakeQuestion = { ...about, want: waiters.length, unused };
    group.primary.ask('limit.take', question, (reply) => {
      if ('error' in reply) {
        asking.delete(key);
        for (const waiter of waiters) waiter.reject(reply.error);
        return;
      }
      const { granted, left, countedAt, freesAt } = reply.body as TakeAnswer;
      const refusedUntil = granted === 0 ? Math.min(freesAt, clock.monotonic() + REFUSED_FOR_MS) : 0;
      const usableUntil = countedAt + windowMs * LOAN_SHARE;
      const endsAt = countedAt + windowMs;
      const lease: Lease = {
        ...{ remaining: granted, left, usableUntil, refusedUntil },
        ...{ countedAt, freesAt, endsAt },
      };
      leases.set(key, lease);
      while (waiters.length > 0 && lease.remaining > 0) {
        lease.remaining--;
        waiters.shift()!.resolve(verdict(true, lease));
      }
      if (granted === 0) for (const waiter of waiters.splice(0)) waiter.resolve(verdict(false, lease));
      // More calls arrived while the request was in flight.
      if (waiters.length > 0) ask(key, limit, waiters);
      else asking.delete(key);
    });
  }

  return {
    take(key, limit) {
      const now = clock.monotonic();
      const lease = leases.find(key, now);
      const waiters = asking.get(key);
      if (lease && lease.remaining > 0 && now < lease.usableUntil && !waiters) {
        lease.remaining--;
        return verdict(true, lease);
      }
      if (lease && now < lease.refusedUntil) return verdict(false, lease);
      return new Promise((resolve, reject) => {
        if (waiters) waiters.push({ resolve, reject });
        else {
          const first = [{ resolve, reject }];
          asking.set(key, first);
          ask(key, limit, first);
        }
      });
    },
    /** Uses local knowledge: the primary reports when an exact limit is reached. */
    peek(key, limit) {
      const now = clock.monotonic();
      const full = fulls.find(key, now);
      if (full) return { allowed: false, remaining: 0, resetMs: full.endsAt - now };
      const lease = leases.find(key, now);
      if (lease && now < lease.refusedUntil) return verdict(false, lease);
      return { allowed: true, remaining: limit, resetMs: windowMs };
    },
    giveBack(key) {
      const question: BackQuestion = { name, key };
      group.primary.ask('limit.back', question, () => {});
    },
    recall({ key, countedAt }) {
      const lease = leases.find(key, clock.monotonic());
      if (lease?.countedAt !== countedAt) return 0;
      const unused = lease.remaining;
      lease.remaining = 0;
      return unused;
    },
    full: ({ key, endsAt }) => fulls.set(key, { endsAt }),
  };
}

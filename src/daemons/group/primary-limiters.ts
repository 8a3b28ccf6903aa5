import {
  type CreateLimiter,
  createCounts,
  type LimiterOptions,
  type RateVerdict,
  type SharedLimiter,
  SlidingCount,
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
import type { Member, PrimaryProcess } from './process-group.ts';

/** Maximum loan: lent permits are unavailable to others until they are recalled. */
const MAX_LOAN = 1000;
/** Maximum loan as a share of the remaining permits, divided by the number of processes. */
const LENT_SHARE = 1 / 4;

/** Permits lent to a sibling. */
interface Loan {
  calls: number;
  countedAt: number;
}

interface Count {
  /** Calls counted here and by siblings, including loans. */
  calls: SlidingCount;
  /** Loans of siblings, which may be unused. */
  lent: Map<Member, Loan>;
  recalling: Promise<void> | undefined;
}

interface PrimaryLimiter extends SharedLimiter {
  lend(question: TakeQuestion, from: Member): TakeAnswer | Promise<TakeAnswer>;
}

/** Limiters of the primary, which counts for all processes. */
export function primaryLimiters(group: PrimaryProcess, clock: Clock): CreateLimiter {
  const limiters = createNamedLimiters((name, options) => createPrimaryLimiter(group, clock, name, options));
  group.answer('limit.take', (body, from) => {
    const question = body as TakeQuestion;
    return limiters.get(question.name, question).lend(question, from);
  });
  group.answer(
    'limit.back',
    limiters.answer((limiter, { key }: BackQuestion) => limiter.giveBack(key), undefined),
  );
  return limiters.get;
}

function createPrimaryLimiter(
  group: PrimaryProcess,
  clock: Clock,
  name: string,
  { windowMs, exact = false, maxKeys }: LimiterOptions,
): PrimaryLimiter {
  const counts = createCounts<Count>(
    clock,
    windowMs,
    () => ({ calls: new SlidingCount(windowMs), lent: new Map(), recalling: undefined }),
    maxKeys,
  );

  function verdict({ calls }: Count, limit: number, allowed: boolean): RateVerdict {
    const now = clock.monotonic();
    return verdictOf(allowed, limit - calls.total(now), now + calls.freesIn(now), now);
  }

  /** Recalls loans, so that their unused permits become available. */
  function recall(key: string, count: Count): Promise<void> {
    count.recalling ??= recallAll(key, count).finally(() => {
      count.recalling = undefined;
    });
    return count.recalling;
  }

  async function recallAll(key: string, count: Count): Promise<void> {
    await Promise.all(
      [...count.lent].map(
        ([member, loan]) =>
          new Promise<void>((resolve) => {
            const question: RecallQuestion = { name, key, countedAt: loan.countedAt };
            member.ask('limit.recall', question, (reply) => {
              // The usage of an ended process is unknown.
              if (!('error' in reply)) takeBack(count, loan, reply.body as number);
              if (count.lent.get(member) === loan) count.lent.delete(member);
              resolve();
            });
          }),
      ),
    );
  }

  function takeBack({ calls }: Count, loan: Loan, unused: number): void {
    const back = Math.min(unused, loan.calls);
    loan.calls -= back;
    calls.remove(back, loan.countedAt);
  }

  function tellFull(key: string, { calls }: Count, limit: number): void {
    const now = clock.monotonic();
    if (!exact || calls.total(now) !== limit) return;
    const question: FullQuestion = { name, key, endsAt: now + calls.freesIn(now) };
    for (const member of group.members()) member.ask('limit.full', question, () => {});
  }

  function take(key: string, limit: number): RateVerdict | Promise<RateVerdict> {
    const count = counts.open(key);
    const now = clock.monotonic();
    if (count.calls.total(now) < limit) {
      count.calls.add(1, now);
      tellFull(key, count, limit);
      return verdict(count, limit, true);
    }
    if (count.lent.size === 0) return verdict(count, limit, false);
    return recall(key, count).then(() => take(key, limit));
  }

  function lend(question: TakeQuestion, from: Member): TakeAnswer | Promise<TakeAnswer> {
    const { key, limit, want, unused } = question;
    const count = counts.open(key);
    // The sibling asks because its loan is used up or has expired.
    const former = count.lent.get(from);
    if (former) takeBack(count, former, unused);
    count.lent.delete(from);
    const now = clock.monotonic();
    const left = Math.max(0, limit - count.calls.total(now));
    if (left === 0 && count.lent.size > 0)
      return recall(key, count).then(() => lend({ ...question, unused: 0 }, from));
    const ahead = exact ? 0 : Math.min(MAX_LOAN, Math.floor((left * LENT_SHARE) / group.size));
    const granted = Math.min(left, Math.max(want, ahead));
    if (granted > 0) count.calls.add(granted, now);
    if (granted > want) count.lent.set(from, { calls: granted - want, countedAt: now });
    if (granted > 0) tellFull(key, count, limit);
    return { granted, left: left - granted, countedAt: now, freesAt: now + count.calls.freesIn(now) };
  }

  return {
    take,
    lend,
    peek(key, limit) {
      const count = counts.find(key);
      if (!count) return { allowed: limit > 0, remaining: limit, resetMs: windowMs };
      // Unused permits of siblings can be recalled.
      return verdict(count, limit, count.calls.total(clock.monotonic()) < limit || count.lent.size > 0);
    },
    giveBack(key) {
      counts.find(key)?.calls.remove(1);
    },
  };
}

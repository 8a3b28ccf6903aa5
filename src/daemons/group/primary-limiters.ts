import type { Clock } from '../../kit/clock.ts';
import {
  type CreateLimiter,
  createCounts,
  type LimiterOptions,
  type RateVerdict,
  type SharedLimiter,
  SlidingCount,
} from '../../kit/rate-limiter.ts';
import type {
  BackQuestion,
  FullQuestion,
  RecallQuestion,
  TakeAnswer,
  TakeQuestion,
} from './limiter-protocol.ts';
import { createNamedLimiters, verdictOf } from './named-limiters.ts';
import type { Member, PrimaryProcess } from './process-group.ts';

/** Nobody borrows more at once: what is lent is not there for the others until it is called back. */
const MOST_LENT = 1000;
/** A sibling may borrow this share of what is left, divided by the processes. */
const LENT_SHARE = 1 / 4;

/** Calls that a sibling borrowed. */
interface Loan {
  calls: number;
  countedAt: number;
}

interface Count {
  /** Calls let through here and by siblings, with those that siblings borrowed. */
  calls: SlidingCount;
  /** What siblings borrowed and may not have used. */
  lent: Map<Member, Loan>;
  recalling: Promise<void> | undefined;
}

interface PrimaryLimiter extends SharedLimiter {
  lend(question: TakeQuestion, from: Member): TakeAnswer | Promise<TakeAnswer>;
}

/** The limiters of the process that counts for all. */
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

  /** After this, what was lent and not used can be let through again. */
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
              // How many a process that is gone has used is unknown.
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
    // It asks because it has none left, or because those it had have lapsed.
    const former = count.lent.get(from);
    if (former) takeBack(count, former, unused);
    count.lent.delete(from);
    const now = clock.monotonic();
    const left = Math.max(0, limit - count.calls.total(now));
    if (left === 0 && count.lent.size > 0)
      return recall(key, count).then(() => lend({ ...question, unused: 0 }, from));
    const ahead = exact ? 0 : Math.min(MOST_LENT, Math.floor((left * LENT_SHARE) / group.size));
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
      // What siblings borrowed and did not use may be called back.
      return verdict(count, limit, count.calls.total(clock.monotonic()) < limit || count.lent.size > 0);
    },
    giveBack(key) {
      counts.find(key)?.calls.remove(1);
    },
  };
}

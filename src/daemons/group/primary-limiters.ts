import {
  type Counts,
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

/**
 * Maximum number of permits in one loan. Other processes cannot use lent permits until the primary recalls the loan.
 */
const MAX_LOAN = 1000;
/**
 * Share of the remaining permits that may be lent in advance. Each sibling's loan is at most this share divided by the
 * number of processes.
 */
const LENT_SHARE = 1 / 4;

/** Permits that the primary lent to a sibling. */
interface Loan {
  calls: number;
  countedAt: number;
}

interface Count {
  /** Calls counted by the primary and by siblings. Permits on loan count as calls. */
  calls: SlidingCount;
  /** Permits lent to siblings, which may leave some of the permits unused. */
  lent: Map<Member, Loan>;
  recalling: Promise<void> | undefined;
}

/** Creates the limiters of the primary process, which counts the calls of all processes. */
export function primaryLimiters(group: PrimaryProcess, clock: Clock): CreateLimiter {
  const limiters = createNamedLimiters((name, options) => new PrimaryLimiter(group, clock, name, options));
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

/** Counts the calls of all processes, and lends permits to siblings. */
class PrimaryLimiter implements SharedLimiter {
  readonly #group: PrimaryProcess;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #options: LimiterOptions;
  readonly #counts: Counts<Count>;

  constructor(group: PrimaryProcess, clock: Clock, name: string, options: LimiterOptions) {
    const { windowMs, maxKeys } = options;
    this.#group = group;
    this.#clock = clock;
    this.#name = name;
    this.#options = options;
    this.#counts = createCounts<Count>(
      clock,
      windowMs,
      () => ({ calls: new SlidingCount(windowMs), lent: new Map(), recalling: undefined }),
      maxKeys,
    );
  }

  take(key: string, limit: number): RateVerdict | Promise<RateVerdict> {
    const count = this.#counts.open(key);
    const now = this.#clock.monotonic();
    if (count.calls.total(now) < limit) {
      count.calls.add(1, now);
      this.#announceFull(key, count, limit);
      return this.#verdict(count, limit, true);
    }
    if (count.lent.size === 0) return this.#verdict(count, limit, false);
    return this.#recall(key, count).then(() => this.take(key, limit));
  }

  lend(question: TakeQuestion, from: Member): TakeAnswer | Promise<TakeAnswer> {
    const { key, limit, want, unused } = question;
    const count = this.#counts.open(key);
    // A sibling requests permits only when its previous loan is used up or has expired.
    const former = count.lent.get(from);
    if (former) takeBack(count, former, unused);
    count.lent.delete(from);
    const now = this.#clock.monotonic();
    const left = Math.max(0, limit - count.calls.total(now));
    if (left === 0 && count.lent.size > 0)
      return this.#recall(key, count).then(() => this.lend({ ...question, unused: 0 }, from));
    const granted = Math.min(left, Math.max(want, this.#aheadOf(left)));
    if (granted > 0) count.calls.add(granted, now);
    if (granted > want) count.lent.set(from, { calls: granted - want, countedAt: now });
    if (granted > 0) this.#announceFull(key, count, limit);
    return { granted, left: left - granted, countedAt: now, freesAt: now + count.calls.freesIn(now) };
  }

  peek(key: string, limit: number): RateVerdict {
    const count = this.#counts.find(key);
    if (!count) return { allowed: limit > 0, remaining: limit, resetMs: this.#options.windowMs };
    // A call is also allowed while siblings hold permits, because their unused permits can be recalled.
    const isAllowed = count.calls.total(this.#clock.monotonic()) < limit || count.lent.size > 0;
    return this.#verdict(count, limit, isAllowed);
  }

  giveBack(key: string): void {
    this.#counts.find(key)?.calls.remove(1);
  }

  /** Returns how many of the remaining permits may be lent to a sibling in advance, for future calls. */
  #aheadOf(left: number): number {
    if (this.#options.exact) return 0;
    return Math.min(MAX_LOAN, Math.floor((left * LENT_SHARE) / this.#group.size));
  }

  #verdict({ calls }: Count, limit: number, allowed: boolean): RateVerdict {
    const now = this.#clock.monotonic();
    return verdictOf(allowed, limit - calls.total(now), now + calls.freesIn(now), now);
  }

  #announceFull(key: string, { calls }: Count, limit: number): void {
    const now = this.#clock.monotonic();
    if (!this.#options.exact || calls.total(now) !== limit) return;
    const question: FullQuestion = { name: this.#name, key, endsAt: now + calls.freesIn(now) };
    for (const member of this.#group.members()) member.ask('limit.full', question, () => {});
  }

  /** Recalls loans, so that their unused permits become available. */
  #recall(key: string, count: Count): Promise<void> {
    count.recalling ??= this.#recallAll(key, count).finally(() => {
      count.recalling = undefined;
    });
    return count.recalling;
  }

  async #recallAll(key: string, count: Count): Promise<void> {
    await Promise.all([...count.lent].map(([member, loan]) => this.#recallLoan(key, count, member, loan)));
  }

  #recallLoan(key: string, count: Count, member: Member, loan: Loan): Promise<void> {
    const question: RecallQuestion = { name: this.#name, key, countedAt: loan.countedAt };
    return new Promise((resolve) => {
      member.ask('limit.recall', question, (reply) => {
        // The loan of an ended process counts as used, because its usage is unknown.
        if (!('error' in reply)) takeBack(count, loan, reply.body as number);
        if (count.lent.get(member) === loan) count.lent.delete(member);
        resolve();
      });
    });
  }
}

function takeBack({ calls }: Count, loan: Loan, unused: number): void {
  const back = Math.min(unused, loan.calls);
  loan.calls -= back;
  calls.remove(back, loan.countedAt);
}

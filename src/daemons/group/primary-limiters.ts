import type { Clock } from '../../kit/clock.ts';
import {
  type CreateLimiter,
  createWindows,
  type LimiterOptions,
  type RateVerdict,
  type SharedLimiter,
  type Window,
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

interface Count extends Window {
  /** Calls let through here and by siblings, with those that siblings borrowed. */
  count: number;
  /** What siblings borrowed and may not have used. */
  lent: Map<Member, number>;
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
  { windowMs, exact = false }: LimiterOptions,
): PrimaryLimiter {
  const windows = createWindows<Count>(clock, windowMs);

  function open(key: string): Count {
    const now = clock.now();
    let window = windows.find(key, now);
    if (!window) {
      window = { count: 0, endsAt: now + windowMs, lent: new Map(), recalling: undefined };
      windows.set(key, window);
    }
    return window;
  }

  const verdict = (window: Window & { count: number }, limit: number, allowed: boolean): RateVerdict =>
    verdictOf(allowed, limit - window.count, window.endsAt, clock.now());

  /** After this, what was lent and not used can be let through again. */
  function recall(key: string, window: Count): Promise<void> {
    window.recalling ??= recallAll(key, window).finally(() => {
      window.recalling = undefined;
    });
    return window.recalling;
  }

  async function recallAll(key: string, window: Count): Promise<void> {
    const question: RecallQuestion = { name, key, endsAt: window.endsAt };
    await Promise.all(
      [...window.lent].map(
        ([member, lent]) =>
          new Promise<void>((resolve) => {
            member.ask('limit.recall', question, (reply) => {
              // Of one that is gone nobody knows what it used.
              const unused = 'error' in reply ? 0 : (reply.body as number);
              window.lent.delete(member);
              window.count -= Math.min(unused, lent);
              resolve();
            });
          }),
      ),
    );
  }

  function tellFull(key: string, window: Count, limit: number): void {
    if (!exact || window.count !== limit) return;
    const question: FullQuestion = { name, key, endsAt: window.endsAt };
    for (const member of group.members()) member.ask('limit.full', question, () => {});
  }

  function take(key: string, limit: number): RateVerdict | Promise<RateVerdict> {
    const window = open(key);
    if (window.count < limit) {
      window.count++;
      tellFull(key, window, limit);
      return verdict(window, limit, true);
    }
    if (window.lent.size === 0) return verdict(window, limit, false);
    return recall(key, window).then(() => take(key, limit));
  }

  function lend(question: TakeQuestion, from: Member): TakeAnswer | Promise<TakeAnswer> {
    const { key, limit, want } = question;
    const window = open(key);
    // It asks because it has none left.
    window.lent.delete(from);
    const left = Math.max(0, limit - window.count);
    if (left === 0 && window.lent.size > 0) return recall(key, window).then(() => lend(question, from));
    const ahead = exact ? 0 : Math.min(MOST_LENT, Math.floor((left * LENT_SHARE) / group.size));
    const granted = Math.min(left, Math.max(want, ahead));
    window.count += granted;
    if (granted > want) window.lent.set(from, granted - want);
    if (granted > 0) tellFull(key, window, limit);
    return { granted, left: left - granted, endsAt: window.endsAt };
  }

  return {
    take,
    lend,
    peek(key, limit) {
      const now = clock.now();
      const window = windows.find(key, now) ?? { count: 0, endsAt: now + windowMs };
      return verdict(window, limit, window.count < limit);
    },
    giveBack(key) {
      const window = windows.find(key, clock.now());
      if (window && window.count > 0) window.count--;
    },
  };
}

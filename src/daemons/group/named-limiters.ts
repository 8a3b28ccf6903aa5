import type { LimiterOptions, RateVerdict, SharedLimiter } from '../../kit/rate-limiter.ts';

/** What every question between processes about a limiter says of it. */
interface AboutLimiter {
  name: string;
}

export interface NamedLimiters<Limiter extends SharedLimiter> {
  /** The limiter of that name: made at the first call, the same ever after. */
  get(name: string, options: LimiterOptions): Limiter;
  /** An answer to questions about a limiter; `otherwise` where there is none of that name yet. */
  answer<Question extends AboutLimiter, Answer>(
    give: (limiter: Limiter, question: Question) => Answer,
    otherwise: Answer,
  ): (body: unknown) => Answer;
}

/** The limiters of one process, whichever part it has in counting: one of each name. */
export function createNamedLimiters<Limiter extends SharedLimiter>(
  create: (name: string, options: LimiterOptions) => Limiter,
): NamedLimiters<Limiter> {
  const limiters = new Map<string, Limiter>();
  return {
    get(name, options) {
      const limiter = limiters.get(name) ?? create(name, options);
      limiters.set(name, limiter);
      return limiter;
    },
    answer: (give, otherwise) => (body) => {
      const question = body as Parameters<typeof give>[1];
      const limiter = limiters.get(question.name);
      return limiter ? give(limiter, question) : otherwise;
    },
  };
}

/** What a window that ends at `endsAt` (epoch ms) says at `now`. */
export function verdictOf(allowed: boolean, remaining: number, endsAt: number, now: number): RateVerdict {
  return { allowed, remaining: Math.max(0, remaining), resetMs: Math.max(0, endsAt - now) };
}

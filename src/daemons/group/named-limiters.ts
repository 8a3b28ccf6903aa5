import type { LimiterOptions, RateVerdict, SharedLimiter } from '../../kit/limits/rate-limiter.ts';

/** Field that all messages between limiters have. */
interface AboutLimiter {
  name: string;
}

export interface NamedLimiters<Limiter extends SharedLimiter> {
  /** Returns the limiter with this name. Creates the limiter on first use. */
  get(name: string, options: LimiterOptions): Limiter;
  /** Creates a request handler that calls `give`, or returns `otherwise` when no limiter has the requested name. */
  answer<Question extends AboutLimiter, Answer>(
    give: (limiter: Limiter, question: Question) => Answer,
    otherwise: Answer,
  ): (body: unknown) => Answer;
}

/** Registry of a process's limiters by name. */
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

/** Returns the verdict at `now` for a window that ends at `endsAt`, both in monotonic ms. */
export function verdictOf(allowed: boolean, remaining: number, endsAt: number, now: number): RateVerdict {
  return { allowed, remaining: Math.max(0, remaining), resetMs: Math.max(0, endsAt - now) };
}

import { codeOf } from '../../../../../kit/errors/errors.ts';

/** Steps of a delivery in the spec's order; `body` is reading the body. */
export type StepName =
  | 'route'
  | 'namespace'
  | 'rate_limit'
  | 'body'
  | 'challenge'
  | 'idempotency'
  | 'authentication'
  | 'dispatch';

/** Step log in the form of the record: `route=ok@21us;namespace=ok@110us`. */
export interface StepLog {
  text: string;
  /** `performance.now()` at the end of the latest step. */
  endedAt: number;
}

export interface StepOutcome {
  step: string;
  outcome: string;
  durationMs: number;
  /** Start of an async attempt, epoch ms. */
  startedAt?: number;
  /** Error of that attempt. */
  error?: string;
}

const ATTEMPT_ERROR_CHARS = 500;

/**
 * An async attempt in the form of the record:
 * `dispatch=retrying@120us@1700000000000@EXECUTION_ERROR%3A%20no`.
 */
export function attemptText(
  outcome: string,
  { tookMs, startedAt, error }: { tookMs: number; startedAt: number; error: string | null },
): string {
  const why =
    error === null ? '' : `@${encodeURIComponent(error.slice(0, ATTEMPT_ERROR_CHARS).toWellFormed())}`;
  return `dispatch=${outcome}@${Math.round(tookMs * 1000)}us@${startedAt}${why}`;
}

export function beginSteps(): StepLog {
  return { text: '', endedAt: performance.now() };
}

/**
 * Records the outcome of a step, which started at the end of the previous one. Appends to a string, since
 * this runs for every step of every delivery.
 */
export function mark({ steps }: { steps: StepLog }, step: StepName, outcome: string): void {
  const now = performance.now();
  const us = Math.round((now - steps.endedAt) * 1000);
  steps.text += steps.text === '' ? `${step}=${outcome}@${us}us` : `;${step}=${outcome}@${us}us`;
  steps.endedAt = now;
}

/** Runs a step and records its outcome. */
export function step<T>(context: { steps: StepLog }, name: StepName, run: () => T): T {
  try {
    const result = run();
    mark(context, name, 'ok');
    return result;
  } catch (error) {
    mark(context, name, codeOf(error) ?? 'failed');
    throw error;
  }
}

export function parseSteps(text: string): StepOutcome[] {
  if (text === '') return [];
  return text.split(';').map((part) => {
    const [step = '', rest = ''] = part.split('=');
    const [outcome = '', took = '0us', startedAt, error] = rest.split('@');
    // Records of earlier versions use milliseconds.
    const durationMs = took.endsWith('us') ? Number(took.slice(0, -2)) / 1000 : Number(took);
    return {
      step,
      outcome,
      durationMs,
      ...(startedAt === undefined ? {} : { startedAt: Number(startedAt) }),
      ...(error === undefined ? {} : { error: decodeURIComponent(error) }),
    };
  });
}

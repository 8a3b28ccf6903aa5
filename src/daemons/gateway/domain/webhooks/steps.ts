import { codeOf } from '../../../../kit/errors.ts';

/** The steps of a delivery, in the spec's order; `body` is the reading of it. */
export type StepName =
  | 'route'
  | 'namespace'
  | 'rate_limit'
  | 'body'
  | 'challenge'
  | 'idempotency'
  | 'authentication'
  | 'dispatch';

/** `route=ok@21us;namespace=ok@110us`: what the record keeps. */
export interface StepLog {
  text: string;
  /** `performance.now()` at the end of the latest. */
  endedAt: number;
}

export interface StepOutcome {
  step: string;
  outcome: string;
  durationMs: number;
  /** Of an attempt of an async delivery: when it began, epoch ms. */
  startedAt?: number;
  /** Why that attempt failed. */
  error?: string;
}

const ATTEMPT_ERROR_CHARS = 500;

/** An attempt of an async delivery, as the record keeps it: `dispatch=retrying@120us@1700000000000@EXECUTION_ERROR%3A%20no`. */
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

/** Notes how a step ended; it began where the one before ended. Text that grows, of whole numbers: this runs for every step of every delivery. */
export function mark({ steps }: { steps: StepLog }, step: StepName, outcome: string): void {
  const now = performance.now();
  const us = Math.round((now - steps.endedAt) * 1000);
  steps.text += steps.text === '' ? `${step}=${outcome}@${us}us` : `;${step}=${outcome}@${us}us`;
  steps.endedAt = now;
}

/** Runs a step and notes how it ended. */
export function step<T>(passage: { steps: StepLog }, name: StepName, run: () => T): T {
  try {
    const result = run();
    mark(passage, name, 'ok');
    return result;
  } catch (error) {
    mark(passage, name, codeOf(error) ?? 'failed');
    throw error;
  }
}

export function parseSteps(text: string): StepOutcome[] {
  if (text === '') return [];
  return text.split(';').map((part) => {
    const [step = '', rest = ''] = part.split('=');
    const [outcome = '', took = '0us', startedAt, error] = rest.split('@');
    // Records of earlier versions have milliseconds.
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

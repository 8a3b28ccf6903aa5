import { codeOf } from '../../../../../kit/errors/errors.ts';

/** Steps of a delivery in the order of the specification. `body` stands for reading the body. */
export type StepName =
  | 'route'
  | 'namespace'
  | 'rate_limit'
  | 'body'
  | 'challenge'
  | 'confirmation'
  | 'idempotency'
  | 'authentication'
  | 'dispatch';

/** Step log of a delivery in its stored format, for example `route=ok@21us;namespace=ok@110us`. */
export interface StepLog {
  text: string;
  /** Value of `performance.now()` at the end of the last step. */
  endedAt: number;
}

export interface StepOutcome {
  step: string;
  outcome: string;
  durationMs: number;
  /** Start time of an async attempt, in epoch ms. */
  startedAt?: number;
  /** Error message of an async attempt. */
  error?: string;
}

const ATTEMPT_ERROR_CHARS = 500;

/**
 * Returns the log entry of an async attempt, for example
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
 * Adds the outcome of a step to the log. A step starts when the previous step ends. The log is a string for speed,
 * because `mark` runs for each step of each delivery.
 */
export function mark({ steps }: { steps: StepLog }, step: StepName, outcome: string): void {
  const now = performance.now();
  const us = Math.round((now - steps.endedAt) * 1000);
  steps.text += steps.text === '' ? `${step}=${outcome}@${us}us` : `;${step}=${outcome}@${us}us`;
  steps.endedAt = now;
}

/** Runs a step and adds its outcome to the log. */
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

/** Returns the secret with which the delivery was authenticated. Undefined for deliveries that were not. */
export function secretUsed(text: string): 'current' | 'previous' | undefined {
  const [, secret] = /(?:^|;)authentication=ok \((current|previous)\)@/.exec(text) ?? [];
  return secret as 'current' | 'previous' | undefined;
}

export function parseSteps(text: string): StepOutcome[] {
  if (text === '') return [];
  return text.split(';').map((part) => {
    const [step = '', rest = ''] = part.split('=');
    const [outcome = '', took = '0us', startedAt, error] = rest.split('@');
    // Records of earlier versions contain milliseconds without a unit.
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

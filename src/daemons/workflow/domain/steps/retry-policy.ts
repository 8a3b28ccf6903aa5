import {
  type ErrorClass,
  type PlatformCode,
  type RetryPolicy,
  type RunError,
  TRANSIENT_CLASSES,
} from '../../../../contracts/index.ts';
import { days } from '../../../../kit/duration.ts';
import { messageOf, PlatformError, toPlatformError } from '../../../../kit/errors.ts';
import type { Random } from '../../../../kit/random.ts';
import { redactJson, redactText } from '../../../../kit/redact.ts';
import { TemplateError } from '../definition/templates.ts';

/** The other side may ask for any pause, and mean to stop the run with it. */
const LONGEST_ASKED_MS = days(1);

/** Why an attempt of a step failed, secrets masked. `retryAfterMs` is what the other side asked for, a day at most. @spec Errors: workflow retries */
export class StepFailure extends Error {
  readonly errorClass: ErrorClass;
  readonly error: RunError;
  readonly retryAfterMs: number | null;

  constructor(errorClass: ErrorClass, error: RunError, retryAfterMs: number | null = null) {
    super(redactText(error.message));
    this.name = 'StepFailure';
    this.errorClass = errorClass;
    this.error = redactJson(error);
    this.retryAfterMs = retryAfterMs === null ? null : Math.min(retryAfterMs, LONGEST_ASKED_MS);
  }
}

const CLASS_OF_CODE: Partial<Record<PlatformCode, ErrorClass>> = {
  EXECUTION_TIMEOUT: 'timeout',
  UPSTREAM_TIMEOUT: 'timeout',
  REQUEST_TIMEOUT: 'timeout',
  UPSTREAM_UNAVAILABLE: 'network',
  HOST_UNAVAILABLE: 'network',
  RATE_LIMIT_EXCEEDED: 'rate_limit',
  CONCURRENT_LIMIT_EXCEEDED: 'rate_limit',
  SERVICE_UNAVAILABLE: 'server',
  INTERNAL_ERROR: 'server',
  STORE_ERROR: 'server',
  SANDBOX_ERROR: 'server',
  UNAUTHORIZED: 'auth',
  FORBIDDEN: 'auth',
  PERMISSION_DENIED: 'auth',
  VALIDATION_ERROR: 'validation',
  EXPRESSION_LIMIT_EXCEEDED: 'validation',
  INVALID_HANDLER: 'validation',
  INVALID_MANIFEST: 'validation',
  HOST_MISMATCH: 'validation',
  PAYLOAD_TOO_LARGE: 'validation',
  NOT_FOUND: 'not_found',
  PLUGIN_NOT_FOUND: 'not_found',
  WORKFLOW_NOT_FOUND: 'not_found',
  JOB_NOT_FOUND: 'not_found',
  HOST_NOT_FOUND: 'not_found',
};

/** What was thrown, classed. A code that says nothing of the cause (EXECUTION_ERROR, a plugin's own) is `code`. */
export function toStepFailure(thrown: unknown): StepFailure {
  if (thrown instanceof StepFailure) return thrown;
  const { code, message, details, headers } = toPlatformError(thrown);
  const seconds = Number(headers['retry-after']);
  return new StepFailure(
    CLASS_OF_CODE[code] ?? 'code',
    {
      code,
      message:
        thrown instanceof PlatformError
          ? message
          : `The step failed: ${String((thrown as Error)?.message ?? thrown)}`,
      details,
    },
    Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : null,
  );
}

/** An attempt whose time was up. */
export function stepTimeout({ timeoutMs }: { timeoutMs: number }): StepFailure {
  return new StepFailure('timeout', {
    code: 'EXECUTION_TIMEOUT',
    message: `The step did not end within ${timeoutMs} ms.`,
    details: { timeoutMs },
  });
}

/** An expression that failed, or a value that a step cannot take. */
export function evaluationFailure(error: unknown): StepFailure {
  if (error instanceof StepFailure) return error;
  const isLimit = error instanceof TemplateError && error.isLimit;
  const code = isLimit ? 'EXPRESSION_LIMIT_EXCEEDED' : 'VALIDATION_ERROR';
  return new StepFailure('validation', { code, message: messageOf(error), details: {} });
}

/** The class of an error that a handler returned, by its code; a code of the plugin's own is `code`. */
export function classOfCode(code: string | undefined): ErrorClass {
  return (code && CLASS_OF_CODE[code as PlatformCode]) || 'code';
}

/** The policy of a step. Its own is consent to repeat the step; an inherited one is not. */
export interface StepRetry {
  policy: RetryPolicy;
  on: readonly ErrorClass[];
  isOwn: boolean;
}

/** The policy that applies: a step's own, which covers what its handler throws too, or the one it inherits. */
export function retryOf(
  own: RetryPolicy | undefined,
  inherited: RetryPolicy | undefined,
): StepRetry | undefined {
  if (own) return { policy: own, on: own.on ?? [...TRANSIENT_CLASSES, 'code'], isOwn: true };
  return inherited && { policy: inherited, on: inherited.on ?? TRANSIENT_CLASSES, isOwn: false };
}

export interface RetryQuestion {
  failure: StepFailure;
  /** Attempts made. */
  attempts: number;
  firstStartedAt: number;
  now: number;
}

/** Milliseconds until the next attempt; null when there is none. */
export function retryDelay(
  retry: StepRetry | undefined,
  { failure, attempts, firstStartedAt, now }: RetryQuestion,
  random: Random,
): number | null {
  if (!retry?.on.includes(failure.errorClass)) return null;
  const { policy } = retry;
  const figures = { ...policy, ...policy.classes[failure.errorClass] };
  if (attempts >= figures.maxAttempts) return null;
  const cap = Math.min(figures.maxMs, figures.initialMs * figures.factor ** (attempts - 1));
  const backoff = figures.jitter === 'full' ? cap * random.fraction() : cap;
  const delay = Math.ceil(Math.max(backoff, failure.retryAfterMs ?? 0));
  const late = policy.deadlineMs !== undefined && now + delay > firstStartedAt + policy.deadlineMs;
  return late ? null : delay;
}

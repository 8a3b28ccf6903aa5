import {
  type ErrorClass,
  type PlatformCode,
  type RetryPolicy,
  type RunError,
  TRANSIENT_CLASSES,
} from '../../../../contracts/index.ts';
import { PlatformError, toPlatformError } from '../../../../kit/errors/errors.ts';
import { NO_TENANT, redactJson, redactText } from '../../../../kit/telemetry/redact.ts';
import { days } from '../../../../kit/time/duration.ts';

/** Maximum delay accepted from a `Retry-After` header, because a longer delay would stall the run. */
const MAX_RETRY_AFTER_MS = days(1);

/**
 * Failure of an attempt, with secrets masked. `retryAfterMs` is the delay that a remote server requested, at most one
 * day. @spec Errors: workflow retries
 */
export class StepFailure extends Error {
  readonly errorClass: ErrorClass;
  readonly error: RunError;
  readonly retryAfterMs: number | null;

  constructor(errorClass: ErrorClass, error: RunError, retryAfterMs: number | null = null) {
    super(redactText(error.message, NO_TENANT));
    this.name = 'StepFailure';
    this.errorClass = errorClass;
    this.error = redactJson(error, NO_TENANT);
    this.retryAfterMs = retryAfterMs === null ? null : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
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

/**
 * Converts a thrown value to a failure with an error class. Error codes without a known class, such as codes that
 * plugins define, get the class `code`.
 */
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

/** Returns the error class of an error code from a handler. The class is `code` for codes that the plugin defines. */
export function classOfCode(code: string | undefined): ErrorClass {
  return (code && CLASS_OF_CODE[code as PlatformCode]) || 'code';
}

/**
 * Retry policy of a step. A step with possible side effects is repeated only if the step itself declares the policy
 * (`isOwn`).
 */
export interface StepRetry {
  policy: RetryPolicy;
  on: readonly ErrorClass[];
  isOwn: boolean;
}

/**
 * Returns the retry policy of the step, or else the inherited policy. By default, an inherited policy does not retry
 * errors of handler code.
 */
export function retryOf(
  own: RetryPolicy | undefined,
  inherited: RetryPolicy | undefined,
): StepRetry | undefined {
  if (own) return { policy: own, on: own.on ?? [...TRANSIENT_CLASSES, 'code'], isOwn: true };
  return inherited && { policy: inherited, on: inherited.on ?? TRANSIENT_CLASSES, isOwn: false };
}

export interface RetryQuestion {
  failure: Pick<StepFailure, 'errorClass' | 'retryAfterMs'>;
  attempts: number;
  firstStartedAt: number;
  now: number;
  /** Random number in [0, 1), for jitter. */
  fraction: number;
}

/** Returns the delay until the next attempt, in ms. Returns null if no further attempt is allowed. */
export function retryDelay(
  retry: StepRetry | undefined,
  { failure, attempts, firstStartedAt, now, fraction }: RetryQuestion,
): number | null {
  if (!retry?.on.includes(failure.errorClass)) return null;
  const { policy } = retry;
  const figures = { ...policy, ...policy.classes[failure.errorClass] };
  if (attempts >= figures.maxAttempts) return null;
  const cap = Math.min(figures.maxMs, figures.initialMs * figures.factor ** (attempts - 1));
  const backoff = figures.jitter === 'full' ? cap * fraction : cap;
  const delay = Math.ceil(Math.max(backoff, failure.retryAfterMs ?? 0));
  const late = policy.deadlineMs !== undefined && now + delay > firstStartedAt + policy.deadlineMs;
  return late ? null : delay;
}

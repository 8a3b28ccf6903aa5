import { codeOf, messageOf, PlatformError } from '../../kit/errors/errors.ts';
import { NO_TENANT, redactText } from '../../kit/telemetry/redact.ts';
import type { ErrorClass } from './language-model.ts';

/** A failed request to a model endpoint. The request is retried if `errorClass` is transient, such as `network`. */
export class RemoteFailure extends Error {
  readonly errorClass: ErrorClass;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    errorClass: ErrorClass,
    message: string,
    extra: { status?: number; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.errorClass = errorClass;
    this.status = extra.status;
    this.retryAfterMs = extra.retryAfterMs;
  }
}

const TRANSIENT: ReadonlySet<ErrorClass> = new Set(['network', 'timeout', 'rate_limit', 'server']);

export function isTransient({ errorClass }: RemoteFailure): boolean {
  return TRANSIENT.has(errorClass);
}

const MAX_MESSAGE_CHARS = 300;

/**
 * Returns the error for a response with a status other than 2xx. `said` is the error message in the response. `now` is
 * in epoch ms.
 */
export function statusFailure(
  status: number,
  said: string,
  retryAfter: string | null,
  now: number,
): RemoteFailure {
  const shown = shownText(said);
  const message = `it answered ${status}${shown ? `: ${shown}` : ''}`;
  return new RemoteFailure(classOf(status), message, { status, retryAfterMs: waitOf(retryAfter, now) });
}

/**
 * Returns a text of the endpoint as plugins may see it. Secrets of the platform are masked. Secrets of the calling tenant
 * are masked where its execution ends, and those of other tenants are not: the tenant could find them by trying.
 */
export function shownText(said: string): string {
  return redactText(said, NO_TENANT).slice(0, MAX_MESSAGE_CHARS);
}

function classOf(status: number): ErrorClass {
  if (status === 429) return 'rate_limit';
  if (status === 401 || status === 403) return 'auth';
  if (status === 408) return 'timeout';
  // OpenAI documents status 409 as retryable.
  if (status >= 500 || status === 409) return 'server';
  return 'refused';
}

/** Returns the wait in ms that a `Retry-After` header specifies. The header contains seconds or a date. */
function waitOf(retryAfter: string | null, now: number): number | undefined {
  if (retryAfter === null) return undefined;
  const seconds = Number(retryAfter);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(retryAfter) - now;
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms)) : undefined;
}

export function connectionFailure(thrown: unknown): RemoteFailure {
  const cause = thrown instanceof Error && thrown.cause ? thrown.cause : thrown;
  const code = codeOf(cause);
  return new RemoteFailure('network', `${messageOf(cause)}${code ? ` (${code})` : ''}`, { cause: thrown });
}

/** Returns the error that the plugin receives after the last failed attempt. */
export function toCallError(
  failure: RemoteFailure,
  adapter: string,
  host: string,
  attempts: number,
): PlatformError {
  const { errorClass, status, retryAfterMs } = failure;
  const details = {
    adapter,
    errorClass,
    attempts,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  const extra = { details, cause: failure };
  const tries = attempts === 1 ? '' : ` (${attempts} attempts)`;
  if (errorClass === 'timeout')
    return new PlatformError('UPSTREAM_TIMEOUT', `${host} did not answer in time${tries}.`, extra);
  if (errorClass === 'refused')
    return new PlatformError('VALIDATION_ERROR', `${host} rejected the request: ${failure.message}.`, extra);
  // An endpoint's message about failed authentication is omitted, because the message could contain the API key.
  const why =
    errorClass === 'auth' ? `it does not accept adapters.${adapter}.apiKey (${status})` : failure.message;
  return new PlatformError('UPSTREAM_UNAVAILABLE', `The request to ${host} failed${tries}: ${why}.`, extra);
}

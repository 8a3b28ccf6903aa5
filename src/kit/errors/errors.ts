import { type ErrorBody, PLATFORM_CODES, type PlatformCode } from '../../contracts/index.ts';

export interface ErrorExtra {
  details?: Record<string, unknown>;
  cause?: unknown;
  /** Response headers that are sent with this error, such as `Retry-After`. */
  headers?: Record<string, string>;
}

/** Default `Retry-After` of a 503, in seconds. Hosts reconnect and services restart within that time. */
const RETRY_AFTER_SECONDS = '5';

/**
 * An error whose message and details are sent to the caller. The cause is only logged. Any other thrown error becomes a
 * 500 without details. @spec Errors
 */
export class PlatformError extends Error {
  readonly code: PlatformCode;
  readonly details: Record<string, unknown>;
  /** Response headers with lower-case names. A 503 always has `retry-after`. */
  readonly headers: Record<string, string>;

  constructor(code: PlatformCode, message: string, extra: ErrorExtra = {}) {
    super(message, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.name = 'PlatformError';
    this.code = code;
    this.details = extra.details ?? {};
    this.headers = headersOf(this.status, extra.headers);
  }

  get status(): number {
    return PLATFORM_CODES[this.code];
  }
}

function headersOf(status: number, given: Record<string, string> = {}): Record<string, string> {
  const named = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]);
  return { ...(status === 503 ? { 'retry-after': RETRY_AFTER_SECONDS } : {}), ...Object.fromEntries(named) };
}

/** Converts a thrown value to a PlatformError. A value of any other type becomes the cause of a 500 without details. */
export function toPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  return new PlatformError(
    'INTERNAL_ERROR',
    'An internal error occurred; the log has the details under this request id.',
    { cause: thrown },
  );
}

/** Converts a thrown value like `toPlatformError`, and hides file paths of the data store from remote callers. */
export function toRemoteError(thrown: unknown): PlatformError {
  const error = toPlatformError(thrown);
  if (error.code !== 'STORE_ERROR') return error;
  return new PlatformError(
    'STORE_ERROR',
    'The data store failed; the log has the details under this request id.',
    {
      cause: error,
      headers: error.headers,
    },
  );
}

export function errorBody(error: PlatformError): ErrorBody {
  return { error: { code: error.code, message: error.message, details: error.details } };
}

/** Returns the message of any thrown value, for logs. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Returns the `code` of a system or driver error, such as `ENOENT`. */
export function codeOf(thrown: unknown): string | undefined {
  const code = (thrown as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

import { type ErrorBody, PLATFORM_CODES, type PlatformCode } from '../contracts/index.ts';

export interface ErrorExtra {
  details?: Record<string, unknown>;
  cause?: unknown;
  /** Response headers that belong to the failure: `Retry-After`, `WWW-Authenticate`. */
  headers?: Record<string, string>;
}

/** What a 503 says where nobody knows better, in seconds: a host connects anew, a service restarts within that time. */
const RETRY_AFTER = '5';

/**
 * A failure meant for the caller: message and details are sent, cause is logged.
 * Throw it where the fact is known; anything else that is thrown becomes an opaque 500.
 * @spec Errors
 */
export class PlatformError extends Error {
  readonly code: PlatformCode;
  readonly details: Record<string, unknown>;
  /** Names in lower case. A 503 always has `retry-after`. */
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
  return { ...(status === 503 ? { 'retry-after': RETRY_AFTER } : {}), ...Object.fromEntries(named) };
}

/** Any thrown value as a PlatformError; what is none becomes opaque, with itself as the cause. */
export function toPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  return new PlatformError(
    'INTERNAL_ERROR',
    'Something went wrong on our side; the log has the details under this request id.',
    { cause: thrown },
  );
}

/** As `toPlatformError`, for callers over the network: which file of ours failed, and where it lies, is the operator's to know. */
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

/** The text of anything that was thrown, for logs. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The `code` of a system error (`ENOENT`), or of a driver's. */
export function codeOf(thrown: unknown): string | undefined {
  const code = (thrown as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

import { PlatformError } from '../../../../../kit/errors/errors.ts';

/** Returns the 429 error for a delivery. `resetMs` is the time until the next permit is available. */
export function rateLimitError(what: string, limit: number, resetMs: number): PlatformError {
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  return new PlatformError('RATE_LIMIT_EXCEEDED', `${what}; try again in ${seconds} s.`, {
    details: { requestsPerMinute: limit, retryAfterSeconds: seconds },
    headers: { 'retry-after': String(seconds) },
  });
}

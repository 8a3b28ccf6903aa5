import type { PlatformError } from '../../../../kit/errors/errors.ts';

const LIMITS = new Set(['QUOTA_EXCEEDED', 'CONCURRENT_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED']);

/** Returns whether the error of a start is transient, so that a later start can succeed. */
export function isTransientStart(error: PlatformError): boolean {
  if (isRejectedByKey(error)) return false;
  return LIMITS.has(error.code) || error.status >= 500;
}

/**
 * Returns whether `concurrency.strategy: reject` rejected the start. Such a rejection is expected and is not retried.
 */
export function isRejectedByKey({ code, details }: PlatformError): boolean {
  return code === 'CONCURRENT_LIMIT_EXCEEDED' && 'workflowId' in details;
}

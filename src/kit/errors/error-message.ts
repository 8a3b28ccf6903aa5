import type { PlatformCode } from '../../contracts/index.ts';
import { messageOf, PlatformError, toPlatformError } from './errors.ts';

/** Serialized form of a PlatformError. */
export interface ErrorMessage {
  code: PlatformCode;
  message: string;
  details: Record<string, unknown>;
}

export function toErrorMessage(thrown: unknown): ErrorMessage {
  const { code, message, details } = toPlatformError(thrown);
  return { code, message, details };
}

/**
 * Returns the error of a process that failed to start. The message includes the cause, because only the operator sees
 * the error.
 */
export function toStartFailure(what: string, thrown: unknown): ErrorMessage {
  if (thrown instanceof PlatformError) return toErrorMessage(thrown);
  return { code: 'INTERNAL_ERROR', message: `${what} could not start: ${messageOf(thrown)}`, details: {} };
}

export function fromErrorMessage({ code, message, details }: ErrorMessage): PlatformError {
  return new PlatformError(code, message, { details });
}

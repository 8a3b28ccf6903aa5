import { CommandResult, isPlatformCode, type PlatformCode } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { boundedDetails } from '../../../kit/errors/bounded-details.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { PlatformCall } from './call-router.ts';

/** An unvalidated frame from the runner process. */
export type RawFrame = Record<string, unknown>;

const MESSAGE_CHARS = 4000;

/**
 * Error codes that a runner is allowed to report. Other codes become EXECUTION_ERROR, because plugin code must not
 * forge platform errors.
 */
const REPORTABLE = new Set<PlatformCode>([
  'ADAPTER_NOT_CONFIGURED',
  'EXECUTION_ERROR',
  'HOST_MISMATCH',
  'INVALID_HANDLER',
  'NOT_IMPLEMENTED',
  'PERMISSION_DENIED',
  'VALIDATION_ERROR',
]);

export function readText(value: unknown, limit = MESSAGE_CHARS): string {
  return typeof value === 'string' ? value.slice(0, limit) : '';
}

export function asFrame(value: unknown): RawFrame | undefined {
  return isRecord(value) ? value : undefined;
}

export function readResult(frame: RawFrame): CommandResult {
  const parsed = CommandResult.safeParse(frame.result);
  if (parsed.success) return parsed.data;
  throw new PlatformError('EXECUTION_ERROR', 'The plugin returned a value that is not a CommandResult.', {
    details: { issues: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })) },
  });
}

/**
 * Returns the error of an `error` frame. The handler's stack trace is kept in `cause`, which is logged but never sent.
 */
export function readError(frame: RawFrame): PlatformError {
  const error = isRecord(frame.error) ? frame.error : {};
  const code = readText(error.code);
  const message = readText(error.message) || 'The handler failed without a message.';
  const stack = readText(error.stack, 2 * MESSAGE_CHARS);
  const cause = stack === '' ? undefined : Object.assign(new Error(message), { stack });
  return new PlatformError(isPlatformCode(code) && REPORTABLE.has(code) ? code : 'EXECUTION_ERROR', message, {
    details: isRecord(error.details) ? boundedDetails(error.details) : {},
    ...(cause ? { cause } : {}),
  });
}

/** Returns the platform call in a frame. Returns undefined for a malformed frame, which cannot be answered. */
export function readCall({ callId, service, method, args }: RawFrame): PlatformCall | undefined {
  if (typeof callId !== 'number' || !Number.isSafeInteger(callId)) return undefined;
  if (typeof service !== 'string' || typeof method !== 'string' || !Array.isArray(args)) return undefined;
  return { callId, service: service.slice(0, 64), method: method.slice(0, 64), args };
}

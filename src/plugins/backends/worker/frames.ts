import { CommandResult, isPlatformCode, type PlatformCode } from '../../../contracts/index.ts';
import { boundedDetails } from '../../../kit/bounded-details.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { isRecord } from '../../../kit/is-record.ts';
import type { PlatformCall } from './call-router.ts';

/** A frame from the runner before anything about it is believed. */
export type RawFrame = Record<string, unknown>;

const MESSAGE_CHARS = 4000;

/** The codes a runner may report; any other is EXECUTION_ERROR, so that plugin code cannot speak for the platform. */
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

/** The frame, when it is an object at all. */
export function asFrame(value: unknown): RawFrame | undefined {
  return isRecord(value) ? value : undefined;
}

export function readResult(frame: RawFrame): CommandResult {
  const parsed = CommandResult.safeParse(frame.result);
  if (parsed.success) return parsed.data;
  throw new PlatformError('EXECUTION_ERROR', 'The plugin answered with something that is no CommandResult.', {
    details: { issues: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })) },
  });
}

/** The failure an `error` frame reports; its stack is kept as the cause, for the log alone. */
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

/** Undefined when the frame is malformed: nobody waits for an answer that could be given. */
export function readCall({ callId, service, method, args }: RawFrame): PlatformCall | undefined {
  if (typeof callId !== 'number' || !Number.isSafeInteger(callId)) return undefined;
  if (typeof service !== 'string' || typeof method !== 'string' || !Array.isArray(args)) return undefined;
  return { callId, service: service.slice(0, 64), method: method.slice(0, 64), args };
}

import {
  type ExecutionRequest,
  HOST_SOCKET,
  isPlatformCode,
  type PlatformCode,
} from '../../../../contracts/index.ts';
import { boundedDetails } from '../../../../kit/errors/bounded-details.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { AgentFrameOf } from './frames.ts';

/** Error codes that an agent is allowed to report. Other codes are replaced by EXECUTION_ERROR. */
const REPORTABLE = new Set<PlatformCode>([
  'ADAPTER_NOT_CONFIGURED',
  'EXECUTION_ERROR',
  'EXECUTION_TIMEOUT',
  'HOST_MISMATCH',
  'HOST_UNAVAILABLE',
  'INTEGRITY_MISMATCH',
  'INVALID_HANDLER',
  'NOT_IMPLEMENTED',
  'PAYLOAD_TOO_LARGE',
  'PERMISSION_DENIED',
  'SANDBOX_ERROR',
  'SERVICE_UNAVAILABLE',
  'VALIDATION_ERROR',
]);

/** Returns the error for an execution whose session ended before the result arrived. `why` is the close reason. */
export function lost({ handler, executionId }: ExecutionRequest, hostId: string, why: string): PlatformError {
  return new PlatformError(
    'HOST_UNAVAILABLE',
    `The connection to host ${hostId} ended while "${handler}" was running there (${why}); whether it finished is not known.`,
    { details: { hostId, executionId, reason: why } },
  );
}

export function tooLarge({ handler }: ExecutionRequest): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The input of "${handler}" is larger than the ${HOST_SOCKET.gatewayFrameBytes} bytes that a host accepts.`,
    { details: { maxBytes: HOST_SOCKET.gatewayFrameBytes } },
  );
}

export function alreadySent({ executionId }: ExecutionRequest, hostId: string): PlatformError {
  return new PlatformError('CONFLICT', `The execution ${executionId} was already sent to host ${hostId}.`);
}

/**
 * Converts an error that an agent reported to a PlatformError. Error codes are restricted, so that agents cannot forge
 * platform errors.
 */
export function reported(error: AgentFrameOf<'error'>['error'], hostId: string): PlatformError {
  const { code, message, details = {} } = error;
  const known = isPlatformCode(code) && REPORTABLE.has(code) ? code : 'EXECUTION_ERROR';
  return new PlatformError(known, message, { details: { ...boundedDetails(details), hostId } });
}

import {
  type ExecutionRequest,
  HOST_SOCKET,
  isPlatformCode,
  type PlatformCode,
} from '../../../../contracts/index.ts';
import { boundedDetails } from '../../../../kit/bounded-details.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { AgentFrameOf } from './frames.ts';

/** What an agent may report; any other code is EXECUTION_ERROR. */
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

/** The session ended while it ran; `why` in the words of the close. */
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
    `The input of "${handler}" is larger than the ${HOST_SOCKET.gatewayFrameBytes} bytes that a host is sent.`,
    { details: { maxBytes: HOST_SOCKET.gatewayFrameBytes } },
  );
}

export function givenAlready({ executionId }: ExecutionRequest, hostId: string): PlatformError {
  return new PlatformError('CONFLICT', `The execution ${executionId} was given to host ${hostId} already.`);
}

/** What an agent says went wrong; it cannot speak for the platform. */
export function reported(error: AgentFrameOf<'error'>['error'], hostId: string): PlatformError {
  const { code, message, details = {} } = error;
  const known = isPlatformCode(code) && REPORTABLE.has(code) ? code : 'EXECUTION_ERROR';
  return new PlatformError(known, message, { details: { ...boundedDetails(details), hostId } });
}

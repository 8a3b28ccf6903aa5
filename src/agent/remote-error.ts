import { isPlatformCode } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';

/** Converts an error from the gateway. Codes unknown to this version of the agent become EXECUTION_ERROR. */
export function remoteError(error: {
  code: string;
  message: string;
  details?: Record<string, unknown> | undefined;
}): PlatformError {
  const code = isPlatformCode(error.code) ? error.code : 'EXECUTION_ERROR';
  return new PlatformError(code, error.message, { details: error.details ?? {} });
}

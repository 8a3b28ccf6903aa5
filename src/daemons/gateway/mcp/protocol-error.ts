import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { toRemoteError } from '../../../kit/errors/errors.ts';

/** Returns the JSON-RPC error of a platform error, with its code and details as data. */
export function protocolError(thrown: unknown): ProtocolError {
  const { status, code, message, details } = toRemoteError(thrown);
  const kind = status < 500 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  return new ProtocolError(kind, message, { code, details });
}

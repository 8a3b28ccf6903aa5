import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { toRemoteError } from '../../../kit/errors/errors.ts';
import { UNTRUSTED_KEY } from './untrusted.ts';

/**
 * Returns the JSON-RPC error of a platform error, with its code and details as data. `untrusted` says whether they can
 * contain data from outside.
 */
export function protocolError(thrown: unknown, { untrusted = false } = {}): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown;
  const { status, code, message, details } = toRemoteError(thrown);
  const kind = status < 500 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  // Clients look for the URI of an unknown resource beside the code.
  const uri = typeof details.uri === 'string' ? { uri: details.uri } : {};
  const mark = untrusted ? { [UNTRUSTED_KEY]: true } : {};
  return new ProtocolError(kind, message, { code, details, ...uri, ...mark });
}

/** Returns the error of a request whose parameters are not valid. */
export const invalidParams = (message: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message);

/** Rejects with JSON-RPC errors, for which `untrusted` has the meaning that it has for `protocolError`. */
export async function reported<Value>(
  work: () => Value | Promise<Value>,
  { untrusted = false } = {},
): Promise<Value> {
  try {
    return await work();
  } catch (thrown) {
    throw protocolError(thrown, { untrusted });
  }
}

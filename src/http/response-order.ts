import type { Duplex } from 'node:stream';
import { pendingResponse } from '../kit/process/node-internals.ts';

/**
 * Calls `act` after all earlier requests on the connection have been answered. Responses then keep the order of the
 * requests.
 */
export function afterPendingResponses(socket: Duplex, act: () => void): void {
  const pending = pendingResponse(socket);
  if (pending) pending.once('close', () => afterPendingResponses(socket, act));
  else act();
}

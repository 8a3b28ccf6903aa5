import type { Duplex } from 'node:stream';
import { pendingResponse } from '../kit/process/node-internals.ts';

/** Calls `act` when earlier requests of the connection are answered: responses have the order of requests. */
export function afterPendingResponses(socket: Duplex, act: () => void): void {
  const pending = pendingResponse(socket);
  if (pending) pending.once('close', () => afterPendingResponses(socket, act));
  else act();
}

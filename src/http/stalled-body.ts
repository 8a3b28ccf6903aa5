import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A body must keep moving: a client that sends none of the rest of it for so long is told 408 and cut off, so that it
 * cannot hold what its request holds. Not one that we keep waiting, by not reading on or by not answering yet.
 */
export function cutStalledBodies(server: Server, idleMs: number): void {
  server.setTimeout(idleMs, (socket: Socket) => {
    const request = pendingRequest(socket);
    if (!request || request.complete || request.readableFlowing !== true) return;
    const error = Object.assign(new Error('The body stalled'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.emit('clientError', error, socket);
    socket.destroySoon();
  });
}

/** What the socket's answer in preparation is an answer to. */
function pendingRequest(socket: Socket): IncomingMessage | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage?.req;
}

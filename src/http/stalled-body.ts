import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { pendingResponse } from '../kit/process/node-internals.ts';

interface Progress {
  bytes: number;
  /** Time (`performance.now()`) of the latest check that found progress. */
  at: number;
}

const CHECKS_PER_TIMEOUT = 4;

/**
 * Answers 408 and closes the connection if no bytes of a request body arrive for `idleMs`. One timer checks all
 * connections, because a timer per socket would slow down requests.
 */
export function cutStalledBodies(server: Server, idleMs: number): void {
  const connections = new Map<Socket, Progress>();
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { bytes: 0, at: 0 });
    socket.on('close', () => connections.delete(socket));
  });
  server.on('listening', () => {
    const timer = setInterval(() => cutStalled(server, connections, idleMs), idleMs / CHECKS_PER_TIMEOUT);
    timer.unref();
    server.once('close', () => clearInterval(timer));
  });
}

function cutStalled(server: Server, connections: ReadonlyMap<Socket, Progress>, idleMs: number): void {
  const now = performance.now();
  for (const [socket, progress] of connections) {
    const bytes = socket.bytesRead + socket.bytesWritten;
    if (bytes !== progress.bytes || !isAwaited(pendingResponse(socket)?.req)) {
      progress.bytes = bytes;
      progress.at = now;
    } else if (now - progress.at >= idleMs) {
      const error = Object.assign(new Error('The body stalled'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      server.emit('clientError', error, socket);
      socket.destroySoon();
    }
  }
}

/**
 * Returns whether the server waits for more of the request body. Returns false while the server itself has paused
 * reading.
 */
function isAwaited(request: IncomingMessage | undefined): boolean {
  return request !== undefined && !request.complete && request.readableFlowing === true;
}

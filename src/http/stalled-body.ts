import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What a connection had moved when it was last looked at. */
interface Progress {
  bytes: number;
  /** `performance.now()` when it had last moved. */
  at: number;
}

const LOOKS = 4;

/**
 * A body must keep moving: a client that sends none of the rest of it for so long is told 408 and cut off, so that it
 * cannot hold what its request holds; a quarter of the time later at most. Not one that we keep waiting, by not reading
 * on or by not answering yet. All connections are looked at from time to time: a timer of each, which Node's own timeout
 * is, costs each request 4 % of what proxying it does.
 */
export function cutStalledBodies(server: Server, idleMs: number): void {
  const connections = new Map<Socket, Progress>();
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { bytes: 0, at: 0 });
    socket.on('close', () => connections.delete(socket));
  });
  server.on('listening', () => {
    const timer = setInterval(() => cutStalled(server, connections, idleMs), idleMs / LOOKS);
    timer.unref();
    server.once('close', () => clearInterval(timer));
  });
}

function cutStalled(server: Server, connections: ReadonlyMap<Socket, Progress>, idleMs: number): void {
  const now = performance.now();
  for (const [socket, progress] of connections) {
    const bytes = socket.bytesRead + socket.bytesWritten;
    if (bytes !== progress.bytes || !isAwaited(pendingRequest(socket))) {
      progress.bytes = bytes;
      progress.at = now;
    } else if (now - progress.at >= idleMs) {
      const error = Object.assign(new Error('The body stalled'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      server.emit('clientError', error, socket);
      socket.destroySoon();
    }
  }
}

/** Whether somebody reads its body, and more of it is to come. */
function isAwaited(request: IncomingMessage | undefined): boolean {
  return request !== undefined && !request.complete && request.readableFlowing === true;
}

/** What the socket's answer in preparation is an answer to. */
function pendingRequest(socket: Socket): IncomingMessage | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage?.req;
}

import type { Socket } from 'node:net';

/**
 * Makes a socket ready to be handed to another process, and returns what has been read of it. Left to itself, Node reads on
 * until the other process has confirmed that it has the socket, and throws away what comes: an answer to the very first
 * that process says. `pause()` would not do, as it only has what is read wait in this process.
 */
export function stopReading(socket: Socket): Buffer {
  const { _handle } = socket as unknown as { _handle: { readStop(): void } | null };
  _handle?.readStop();
  return (socket.read() as Buffer | null) ?? Buffer.alloc(0);
}

import type { Socket } from 'node:net';

/**
 * Prepares a socket for transfer to another process, and returns data already read. `pause()` is not enough:
 * Node keeps reading until the transfer is confirmed, and discards that data.
 */
export function stopReading(socket: Socket): Buffer {
  const { _handle } = socket as unknown as { _handle: { readStop(): void } | null };
  _handle?.readStop();
  return (socket.read() as Buffer | null) ?? Buffer.alloc(0);
}

import type { Socket } from 'node:net';

/**
 * Prepares a socket for transfer to another process, and returns data already read. `pause()` would not do:
 * Node keeps reading until the transfer is confirmed and discards the data, including the reply to a first
 * message.
 */
export function stopReading(socket: Socket): Buffer {
  const { _handle } = socket as unknown as { _handle: { readStop(): void } | null };
  _handle?.readStop();
  return (socket.read() as Buffer | null) ?? Buffer.alloc(0);
}

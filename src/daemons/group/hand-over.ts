import type { Socket } from 'node:net';
import { stopReading } from '../../kit/process/node-internals.ts';

/**
 * Prepares a socket for transfer to another process, and returns data already read. `pause()` is not enough:
 * Node keeps reading until the transfer is confirmed, and discards that data.
 */
export function takeUnread(socket: Socket): Buffer {
  stopReading(socket);
  return (socket.read() as Buffer | null) ?? Buffer.alloc(0);
}

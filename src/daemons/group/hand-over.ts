import type { Socket } from 'node:net';
import { stopReading } from '../../kit/process/node-internals.ts';

/**
 * Prepares a socket for transfer to another process, and returns the data that was already read. `pause()` is not
 * sufficient: until the transfer is confirmed, Node keeps reading and discards the data.
 */
export function takeUnread(socket: Socket): Buffer {
  stopReading(socket);
  return (socket.read() as Buffer | null) ?? Buffer.alloc(0);
}

import net from 'node:net';
import process from 'node:process';
import { createLineReader } from '../line-reader.ts';
import type { FromRunner, ToRunner } from './protocol.ts';

/** The descriptor every parent hands over. */
const CHANNEL_FD = 3;
/** The daemon is trusted; this only keeps a broken one from filling our memory. */
const MAX_FRAME_BYTES = 256 * 1024 * 1024;
const LAST_WORDS_MS = 200;

export interface Channel {
  send(frame: FromRunner): void;
  /** Sends a frame that is JSON text already. */
  sendText(json: string): void;
  /** Sends a last frame and ends the process once it is out. */
  sendLast(frame: FromRunner, exitCode: number): void;
}

/** Opens the frames' channel. When the parent closes it or dies, this process ends. */
export function openChannel(onFrame: (frame: ToRunner) => void): Channel {
  const socket = new net.Socket({ fd: CHANNEL_FD, readable: true, writable: true });
  const reader = createLineReader(MAX_FRAME_BYTES, (line) => onFrame(JSON.parse(line) as ToRunner));
  socket.on('data', (chunk: Buffer) => {
    if (!reader.push(chunk)) process.exit(1);
  });
  socket.on('end', () => process.exit(0));
  socket.on('error', () => process.exit(0));
  return {
    send: (frame) => void socket.write(`${JSON.stringify(frame)}\n`),
    sendText: (json) => void socket.write(`${json}\n`),
    sendLast(frame, exitCode) {
      const exit = () => process.exit(exitCode);
      socket.write(`${JSON.stringify(frame)}\n`, exit);
      setTimeout(exit, LAST_WORDS_MS);
    },
  };
}

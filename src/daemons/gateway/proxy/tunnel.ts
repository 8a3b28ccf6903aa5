import type { Duplex } from 'node:stream';
import { closeFrame, createFrameBoundary } from './frame-boundary.ts';

/** Two sockets joined after a WebSocket handshake. */
export interface Tunnel {
  /** Tells the client why by a close frame as soon as one fits between its frames, and ends both sides within a second. */
  close(code: number, reason: string): void;
}

const CLOSE_WITHIN_MS = 1000;

/**
 * Joins client and upstream: bytes pass both ways untouched, so that messages, pings, subprotocols, extensions, close
 * codes and backpressure are those of the two ends. Frames are only counted, so that the gateway can close in its own name.
 */
export function openTunnel(client: Duplex, upstream: Duplex, onClosed: () => void): Tunnel {
  const boundary = createFrameBoundary();
  let closing: Buffer | undefined;
  let over = false;

  function end(): void {
    if (over) return;
    over = true;
    client.destroy();
    upstream.destroy();
    onClosed();
  }
  function sendClose(): void {
    if (!closing || !boundary.atBoundary || over) return;
    upstream.destroy();
    client.end(closing);
    closing = undefined;
  }
  upstream.on('data', (bytes: Buffer) => {
    boundary.push(bytes);
    if (client.writable && !client.write(bytes)) upstream.pause();
    sendClose();
  });
  client.on('drain', () => upstream.resume());
  upstream.on('end', () => client.end());
  client.pipe(upstream);
  for (const side of [client, upstream]) side.on('error', end);
  client.on('close', end);
  // What the upstream said last is still on its way to the client.
  upstream.on('close', () => {
    if (client.writableFinished || client.destroyed) end();
    else client.end();
  });
  return {
    close(code, reason) {
      closing = closeFrame(code, reason);
      sendClose();
      setTimeout(end, CLOSE_WITHIN_MS).unref();
    },
  };
}

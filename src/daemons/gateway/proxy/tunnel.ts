import type { Duplex } from 'node:stream';
import type { Clock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { closeFrame, createFrameBoundary } from './frame-boundary.ts';

/** Two sockets joined after a WebSocket handshake. */
export interface Tunnel {
  /** Bytes that went either way so far. */
  readonly bytes: number;
  /** Tells the client why by a close frame as soon as one fits between its frames, and ends both sides within a second. */
  close(code: number, reason: string): void;
}

export interface TunnelOptions {
  maxMessageBytes: number;
  clock: Clock;
  onClosed: () => void;
}

const CLOSE_WITHIN_MS = 1000;
/** How long one side may stay open after the other has ended. */
const HALF_OPEN_MS = seconds(10);

/**
 * Joins client and upstream: bytes pass both ways untouched, so that messages, pings, subprotocols, extensions and close
 * codes are those of the two ends. Frame headers are checked; a client's message over `maxMessageBytes` closes with 1009.
 */
export function openTunnel(
  client: Duplex,
  upstream: Duplex,
  { maxMessageBytes, clock, onClosed }: TunnelOptions,
): Tunnel {
  const inbound = createFrameBoundary(maxMessageBytes);
  // Services behind the gateway are the operator's own: their messages may be of any size.
  const outbound = createFrameBoundary(Number.POSITIVE_INFINITY);
  let bytes = 0;
  let closing: Buffer | undefined;
  /** Nothing of the client goes to the upstream any more. */
  let isClosing = false;
  let over = false;
  let stopHalfOpen: (() => void) | undefined;

  function end(): void {
    if (over) return;
    over = true;
    stopHalfOpen?.();
    client.destroy();
    upstream.destroy();
    onClosed();
  }
  function sendClose(): void {
    if (!closing || !outbound.atBoundary || over) return;
    upstream.destroy();
    client.end(closing);
    closing = undefined;
  }
  function limitHalfOpen(): void {
    if (!over) stopHalfOpen ??= clock.after(HALF_OPEN_MS, end);
  }
  function close(code: number, reason: string): void {
    if (isClosing) return;
    isClosing = true;
    closing = closeFrame(code, reason);
    sendClose();
    setTimeout(end, CLOSE_WITHIN_MS).unref();
  }

  client.on('data', (chunk: Buffer) => {
    if (isClosing) return;
    bytes += chunk.length;
    const fault = inbound.push(chunk);
    // What stands before the refused frame passes.
    const part = fault ? chunk.subarray(0, fault.at) : chunk;
    if (part.length > 0 && upstream.writable && !upstream.write(part)) client.pause();
    if (fault) close(fault.code, fault.reason);
  });
  upstream.on('data', (chunk: Buffer) => {
    if (over || client.writableEnded) return;
    bytes += chunk.length;
    if (outbound.push(chunk)) return end();
    if (client.writable && !client.write(chunk)) upstream.pause();
    sendClose();
  });
  client.on('drain', () => upstream.resume());
  upstream.on('drain', () => client.resume());
  client.on('end', () => {
    upstream.end();
    limitHalfOpen();
  });
  upstream.on('end', () => {
    client.end();
    limitHalfOpen();
  });
  for (const side of [client, upstream]) side.on('error', end);
  client.on('close', end);
  // What the upstream said last is still on its way to the client.
  upstream.on('close', () => {
    if (client.writableFinished || client.destroyed) end();
    else client.end();
  });
  return {
    get bytes() {
      return bytes;
    },
    close,
  };
}

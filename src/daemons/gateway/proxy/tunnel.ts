import type { Duplex } from 'node:stream';
import type { Clock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { closeFrame, FrameBoundary } from './frame-boundary.ts';

export interface TunnelOptions {
  maxMessageBytes: number;
  clock: Clock;
  onClosed: () => void;
}

const CLOSE_TIMEOUT_MS = seconds(1);
/** Maximum time that one side of a tunnel stays open after the other side has ended. */
const HALF_OPEN_TIMEOUT_MS = seconds(10);

/**
 * Connects two sockets after a WebSocket handshake. Frames are checked but not changed. A client message larger than
 * `maxMessageBytes` closes the tunnel with code 1009.
 */
export class Tunnel {
  readonly #client: Duplex;
  readonly #upstream: Duplex;
  readonly #clock: Clock;
  readonly #onClosed: () => void;
  readonly #inbound: FrameBoundary;
  /** Messages to the client have no size limit, because upstreams are trusted. */
  readonly #outbound = new FrameBoundary(Number.POSITIVE_INFINITY);
  #bytes = 0;
  #pendingCloseFrame: Buffer | undefined;
  #isClosing = false;
  #isOver = false;
  #cancelHalfOpen: (() => void) | undefined;

  constructor(client: Duplex, upstream: Duplex, { maxMessageBytes, clock, onClosed }: TunnelOptions) {
    this.#client = client;
    this.#upstream = upstream;
    this.#clock = clock;
    this.#onClosed = onClosed;
    this.#inbound = new FrameBoundary(maxMessageBytes);
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk));
    upstream.on('data', (chunk: Buffer) => this.#fromUpstream(chunk));
    client.on('drain', () => upstream.resume());
    upstream.on('drain', () => client.resume());
    client.on('end', () => this.#endOther(upstream));
    upstream.on('end', () => this.#endOther(client));
    client.on('error', this.#end).on('close', this.#end);
    upstream.on('error', this.#end).on('close', () => this.#onUpstreamClosed());
  }

  /** Number of bytes transferred in both directions. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Sends a close frame to the client as soon as the current frame ends. Closes both sockets within a second. */
  close(code: number, reason: string): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#pendingCloseFrame = closeFrame(code, reason);
    this.#sendClose();
    setTimeout(this.#end, CLOSE_TIMEOUT_MS).unref();
  }

  #fromClient(chunk: Buffer): void {
    if (this.#isClosing) return;
    this.#bytes += chunk.length;
    const fault = this.#inbound.push(chunk);
    // Bytes before the invalid frame are still forwarded.
    const part = fault ? chunk.subarray(0, fault.at) : chunk;
    if (part.length > 0 && this.#upstream.writable && !this.#upstream.write(part)) this.#client.pause();
    if (fault) this.close(fault.code, fault.reason);
  }

  #fromUpstream(chunk: Buffer): void {
    if (this.#isOver || this.#client.writableEnded) return;
    this.#bytes += chunk.length;
    if (this.#outbound.push(chunk)) {
      this.#end();
      return;
    }
    if (this.#client.writable && !this.#client.write(chunk)) this.#upstream.pause();
    this.#sendClose();
  }

  #sendClose(): void {
    if (!this.#pendingCloseFrame || !this.#outbound.atBoundary || this.#isOver) return;
    this.#upstream.destroy();
    this.#client.end(this.#pendingCloseFrame);
    this.#pendingCloseFrame = undefined;
  }

  #endOther(side: Duplex): void {
    side.end();
    if (!this.#isOver) this.#cancelHalfOpen ??= this.#clock.after(HALF_OPEN_TIMEOUT_MS, this.#end);
  }

  /** Ends the client's connection after its write buffer has been sent. */
  #onUpstreamClosed(): void {
    if (this.#client.writableFinished || this.#client.destroyed) this.#end();
    else this.#client.end();
  }

  readonly #end = (): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelHalfOpen?.();
    this.#client.destroy();
    this.#upstream.destroy();
    this.#onClosed();
  };
}

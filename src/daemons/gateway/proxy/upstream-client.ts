import type { Readable } from 'node:stream';

/** One request to an upstream. */
export interface UpstreamRequest {
  origin: string;
  method: string;
  /** As the client wrote it, byte for byte. */
  path: string;
  /** Flat names and values; `host` is the client's to add. */
  headers: string[];
  /** Streamed; null when the request has no body. */
  body: Readable | null;
}

/** What becomes of it: one head, data, one end; or one error at any point. Nothing follows `onEnd` and `onError`. */
export interface UpstreamHandler {
  onHead(status: number, rawHeaders: readonly string[]): void;
  /** False: pause until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onError(error: Error): void;
}

export interface UpstreamCall {
  resume(): void;
  /** Cuts the exchange; no handler is called any more. */
  abort(): void;
}

export interface UpstreamClient {
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  close(): Promise<void>;
}

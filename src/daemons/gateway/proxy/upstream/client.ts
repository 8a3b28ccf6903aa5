import type { Readable } from 'node:stream';
import { codeOf, PlatformError } from '../../../../kit/errors/errors.ts';

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
  /** Bytes of the body, as a content-length among the headers tells; null: none, or in chunks. */
  contentLength: number | null;
  /** Until the head of the answer, from the last byte of the request on. */
  timeoutMs: number;
}

/** Receives one head, data and one end; or one error at any point. Nothing follows `onEnd` and `onError`. */
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

/** The upstream took the request and did not answer in time. */
export class UpstreamTimeoutError extends Error {
  readonly code = 'UPSTREAM_TIMEOUT';

  constructor() {
    super('No answer in time.');
  }
}

const TIMEOUTS = new Set(['UPSTREAM_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** The answer for an upstream's failure: 504 when it was silent, else 502. */
export function upstreamError(name: string, error: Error): PlatformError {
  if (error instanceof PlatformError) return error;
  if (TIMEOUTS.has(codeOf(error) ?? '')) {
    return new PlatformError('UPSTREAM_TIMEOUT', `The ${name} service did not answer in time.`, {
      cause: error,
    });
  }
  return new PlatformError(
    'UPSTREAM_UNAVAILABLE',
    `The ${name} service gave no usable answer; \`svc status\` shows whether it runs.`,
    { cause: error },
  );
}

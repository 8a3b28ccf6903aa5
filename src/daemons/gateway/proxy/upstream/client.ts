import type { Readable } from 'node:stream';
import { codeOf, PlatformError } from '../../../../kit/errors/errors.ts';

/** One request to an upstream. */
export interface UpstreamRequest {
  origin: string;
  method: string;
  /** The client's path and query, unchanged. */
  path: string;
  /** Flat pairs without `host`, which the upstream client adds. */
  headers: string[];
  /** Null without a body. */
  body: Readable | null;
  /** Bytes of the body, same as the content-length header; null without a body, or if it is chunked. */
  contentLength: number | null;
  /** Time from the last byte of the request to the head of the response. */
  timeoutMs: number;
}

/** Receives head, data and end in this order, or an error at any point. `onEnd` and `onError` are the last calls. */
export interface UpstreamHandler {
  onHead(status: number, rawHeaders: readonly string[]): void;
  /** Returns false to pause until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onError(error: Error): void;
}

export interface UpstreamCall {
  resume(): void;
  /** Aborts the exchange. No handler is called afterwards. */
  abort(): void;
}

export interface UpstreamClient {
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  close(): Promise<void>;
}

/** The upstream accepted the request but did not answer in time. */
export class UpstreamTimeoutError extends Error {
  readonly code = 'UPSTREAM_TIMEOUT';

  constructor() {
    super('No answer in time.');
  }
}

const TIMEOUTS = new Set(['UPSTREAM_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Converts an upstream's failure: 504 for a timeout, otherwise 502. */
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

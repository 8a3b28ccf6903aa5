import type { Readable } from 'node:stream';
import { codeOf, PlatformError } from '../../../../kit/errors/errors.ts';

export interface UpstreamRequest {
  origin: string;
  method: string;
  /** Path and query as the client sent them. */
  path: string;
  /** Flat list of header names and values. The upstream client adds `host`. */
  headers: string[];
  /** The request body; null for none. */
  body: Readable | null;
  /** Value of the content-length header; null for no body or a chunked one. */
  contentLength: number | null;
  /** Maximum time between the end of the request and the head of the response. */
  timeoutMs: number;
}

/**
 * Receives head, data and end of a response in this order, or an error at any point. No call follows `onEnd` or
 * `onError`.
 */
export interface UpstreamHandler {
  onHead(status: number, rawHeaders: readonly string[]): void;
  /** Returns false to pause the response until `resume` is called. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onError(error: Error): void;
}

export interface UpstreamCall {
  resume(): void;
  /** Aborts the exchange. The handler is not called afterwards. */
  abort(): void;
}

export interface UpstreamClient {
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  close(): Promise<void>;
}

/** The upstream accepted a request but did not answer in time. */
export class UpstreamTimeoutError extends Error {
  readonly code = 'UPSTREAM_TIMEOUT';

  constructor() {
    super('No answer in time.');
  }
}

const TIMEOUTS = new Set(['UPSTREAM_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Converts an error of an upstream to 504 for a timeout, otherwise to 502. */
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

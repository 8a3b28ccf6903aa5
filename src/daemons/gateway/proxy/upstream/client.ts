import type { Readable } from 'node:stream';
import { codeOf, PlatformError } from '../../../../kit/errors/errors.ts';

export interface UpstreamRequest {
  origin: string;
  method: string;
  /** Path and query, unchanged from the client's request. */
  path: string;
  /** Flat list of header names and values. The upstream client adds `host`. */
  headers: string[];
  body: Readable | null;
  /** Content-Length in bytes, or null for an empty or chunked body. */
  contentLength: number | null;
  /** Maximum time between the end of the request and the head of the response. */
  timeoutMs: number;
}

/**
 * Receives an upstream's response. The calls are `onHead`, any number of `onData`, and finally `onEnd`. `onError`
 * replaces the remaining calls after a failure.
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
  /** Aborts the request. The handler is not called after `abort`. */
  abort(): void;
}

export interface UpstreamClient {
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  close(): Promise<void>;
}

/** Error for an upstream that does not send a response head within the timeout. */
export class UpstreamTimeoutError extends Error {
  readonly code = 'UPSTREAM_TIMEOUT';

  constructor() {
    super('No answer in time.');
  }
}

const TIMEOUTS = new Set(['UPSTREAM_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Converts an error of an upstream call to UPSTREAM_TIMEOUT (504) or UPSTREAM_UNAVAILABLE. */
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

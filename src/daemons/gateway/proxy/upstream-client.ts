import type { Readable } from 'node:stream';
import { codeOf, PlatformError } from '../../../kit/errors.ts';

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

/** The upstream took the request and did not answer in time. */
export class UpstreamTimeoutError extends Error {
  readonly code = 'UPSTREAM_TIMEOUT';

  constructor() {
    super('No answer in time.');
  }
}

/** Chooses by where the upstream is: `near` for plain HTTP on this machine, `far` for all else. */
export function createUpstreamClient(near: UpstreamClient, far: UpstreamClient): UpstreamClient {
  const chosen = new Map<string, UpstreamClient>();

  function choose(origin: string): UpstreamClient {
    const { protocol, hostname } = new URL(origin);
    const local = hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
    const client = protocol === 'http:' && local ? near : far;
    chosen.set(origin, client);
    return client;
  }
  return {
    send: (request, handler) => (chosen.get(request.origin) ?? choose(request.origin)).send(request, handler),
    async close() {
      await Promise.all([near.close(), far.close()]);
    },
  };
}

const TIMEOUTS = new Set(['UPSTREAM_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** What a client is told of an upstream's failure: 504 when it was silent, else 502. */
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

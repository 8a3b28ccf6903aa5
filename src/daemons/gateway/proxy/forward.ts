import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../../contracts/index.ts';
import {
  continueIfExpected,
  type HttpKit,
  sendRawError,
  unknownTransferCoding,
} from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors.ts';
import { traceparentOf } from '../../../kit/trace.ts';
import type { CountUpstreamRequest } from '../metrics.ts';
import { createRequestHeaders } from './request-headers.ts';
import { type ResponseHead, responseHead } from './response-headers.ts';
import {
  type UpstreamCall,
  type UpstreamClient,
  type UpstreamHandler,
  upstreamError,
} from './upstream-client.ts';
import type { Upstream } from './upstreams.ts';

export interface ForwarderDeps {
  client: UpstreamClient;
  internalSecret: string;
  bodyLimitBytes: number;
  count: CountUpstreamRequest;
}

/**
 * Hands an authenticated request to its upstream and its answer back; answers errors itself. Never throws.
 * `extra`: headers of the gateway's own for the answer, flat.
 */
export type Forward = (
  request: FastifyRequest,
  reply: FastifyReply,
  upstream: Upstream,
  caller: Caller,
  extra: readonly string[] | null,
) => void;

export function createForwarder({ client, internalSecret, bodyLimitBytes, count }: ForwarderDeps): Forward {
  const headersFor = createRequestHeaders(internalSecret);

  return (request, reply, upstream, caller, extra) => {
    const { raw } = request;
    const answer = new Answer(request, reply.raw, upstream.name, count, extra);
    try {
      const { contentLength, chunked } = framingOf(raw, bodyLimitBytes);
      const headers = headersFor({
        rawHeaders: raw.rawHeaders,
        connection: raw.headers.connection,
        caller,
        requestId: request.id,
        traceId: request.traceId,
        traceparent: traceparentOf(raw.headers, request.traceId, request.spanId),
        forwardedFor: request.ip,
        forwardedHost: request.host,
        forwardedProto: request.protocol === 'https' ? 'https' : 'http',
        contentLength,
      });
      const origin = upstream.origin();
      const path = upstream.basePath + raw.url!;
      let body: Readable | null = null;
      if (contentLength !== null) body = raw;
      else if (chunked) body = metered(raw, bodyLimitBytes, answer);
      if (body) continueIfExpected(raw, reply.raw);
      answer.begin(client.send({ origin, method: request.method, path, headers, body, chunked }, answer));
    } catch (error) {
      answer.fail(toPlatformError(error));
    }
  };
}

/** What logs and metrics say of a client that left before its answer, as nginx does. */
const CLIENT_LEFT = 499;
const SMALL_BYTES = 16 * 1024;

/**
 * The answer of one request on its way from upstream to client; whatever goes wrong on either side ends both.
 * A class, as there is one for each request: closures for each of its parts would cost more than forwarding does.
 */
class Answer implements UpstreamHandler {
  private readonly request: FastifyRequest;
  private readonly res: ServerResponse;
  private readonly upstream: string;
  private readonly count: CountUpstreamRequest;
  private readonly extra: readonly string[] | null;
  private readonly kit: HttpKit;
  private call: UpstreamCall | undefined;
  private head: ResponseHead | undefined;
  private received = 0;
  private over = false;

  constructor(
    request: FastifyRequest,
    res: ServerResponse,
    upstream: string,
    count: CountUpstreamRequest,
    extra: readonly string[] | null,
  ) {
    this.request = request;
    this.res = res;
    this.upstream = upstream;
    this.count = count;
    this.extra = extra;
    this.kit = request.server.kit;
    res.on('close', () => this.onClientGone());
  }

  begin(call: UpstreamCall): void {
    this.call = call;
    if (this.over) call.abort();
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.count(this.upstream, status);
    this.head = responseHead(status, rawHeaders, this.request.id, this.extra);
    // A short body is close behind: its head waits for it. A stream's must not.
    const { contentLength } = this.head;
    if (contentLength !== null && contentLength < SMALL_BYTES) return;
    this.writeHead();
    this.res.flushHeaders();
  }

  onData(chunk: Buffer): boolean {
    this.received += chunk.length;
    if (this.received === this.head!.contentLength) {
      this.finish(chunk);
      return true;
    }
    if (!this.res.headersSent) this.writeHead();
    if (this.res.write(chunk)) return true;
    this.res.once('drain', () => this.call?.resume());
    return false;
  }

  onEnd(): void {
    if (!this.over) this.finish(undefined);
  }

  onError(error: Error): void {
    if (this.over) return;
    if (!this.head) this.count(this.upstream, 'error');
    const { id: requestId, traceId, caller } = this.request;
    this.kit.logger.warn(`The ${this.upstream} service failed a call: ${error.message}`, {
      requestId,
      traceId,
      tenantId: caller?.namespaceId ?? '',
      meta: { upstream: this.upstream, error },
    });
    this.fail(upstreamError(this.upstream, error));
  }

  fail(error: PlatformError): void {
    if (this.over) return;
    this.over = true;
    this.call?.abort();
    const { res, request } = this;
    // Half an answer must not look whole: its framing stays unfinished.
    if (res.headersSent) res.destroy();
    else sendRawError(res, error, request.id, this.extra);
    this.kit.account(request, res.statusCode);
  }

  private finish(chunk: Buffer | undefined): void {
    this.over = true;
    const { res } = this;
    if (!res.headersSent) this.writeHead();
    if (chunk === undefined) res.end();
    // As text it leaves in one write with the head.
    else if (chunk.length < SMALL_BYTES) res.end(chunk.toString('latin1'), 'latin1');
    else res.end(chunk);
    this.kit.account(this.request, res.statusCode);
  }

  private writeHead(): void {
    const { status, headers } = this.head!;
    if (this.kit.draining) headers.push('connection', 'close');
    this.res.writeHead(status, headers);
  }

  private onClientGone(): void {
    if (this.over) return;
    this.over = true;
    this.call?.abort();
    this.kit.account(this.request, CLIENT_LEFT);
  }
}

interface Framing {
  /** As sent; null: there is no body, or one in chunks. */
  contentLength: string | null;
  chunked: boolean;
}

const NO_BODY: Framing = { contentLength: null, chunked: false };
const CHUNKED: Framing = { contentLength: null, chunked: true };

/** How the body is delimited. Node has refused what is malformed or ambiguous; the rest is what we do not do. */
function framingOf({ headers }: IncomingMessage, limit: number): Framing {
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (coding.toLowerCase() === 'chunked') return CHUNKED;
    throw unknownTransferCoding();
  }
  if (length === undefined) return NO_BODY;
  if (Number(length) > limit) throw tooLarge(limit);
  return { contentLength: length, chunked: false };
}

/** A body of unannounced length, counted as it passes. */
function metered(raw: IncomingMessage, limit: number, answer: Answer): Readable {
  let seen = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      if (seen > limit) answer.fail(tooLarge(limit));
      else done(null, chunk);
    },
  });
  raw.on('close', () => {
    if (!raw.complete) meter.destroy();
  });
  return raw.pipe(meter);
}

const CLOSE = { headers: { connection: 'close' } };

function tooLarge(limit: number): PlatformError {
  return new PlatformError('PAYLOAD_TOO_LARGE', `The request body is larger than ${limit} bytes.`, {
    details: { limitBytes: limit },
    ...CLOSE,
  });
}

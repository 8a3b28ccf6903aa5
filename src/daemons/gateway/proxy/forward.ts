import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { continueIfExpected, sendRawError } from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import { traceparentOf } from '../../../kit/trace.ts';
import type { Principal } from '../domain/authenticator.ts';
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
  logger: Logger;
}

/**
 * Hands an authenticated request to its upstream and its answer back; answers errors itself. Never throws.
 * `extra`: headers of the gateway's own for the answer, flat.
 */
export type Forward = (
  request: FastifyRequest,
  reply: FastifyReply,
  upstream: Upstream,
  caller: Principal,
  extra: readonly string[] | null,
) => void;

export function createForwarder(deps: ForwarderDeps): Forward {
  const headersFor = createRequestHeaders(deps.internalSecret);
  const { bodyLimitBytes, client } = deps;

  function send(
    request: FastifyRequest,
    res: ServerResponse,
    upstream: Upstream,
    caller: Principal,
    extra: readonly string[] | null,
  ): void {
    const { raw } = request;
    const framing = framingOf(raw, bodyLimitBytes);
    const headers = headersFor({
      rawHeaders: raw.rawHeaders,
      connection: raw.headers.connection,
      caller,
      requestId: request.id,
      traceId: request.traceId,
      traceparent: traceparentOf(raw.headers, request.traceId),
      forwardedFor: request.ip,
      forwardedHost: raw.headers.host ?? '',
      forwardedProto: request.protocol === 'https' ? 'https' : 'http',
      contentLength: framing.contentLength,
    });
    const origin = upstream.origin();
    const exchange = createExchange(request, res, upstream, deps, extra);
    const { method } = request;
    const path = upstream.basePath + raw.url!;
    const { chunked } = framing;
    let body: Readable | null = null;
    if (framing.contentLength !== null) body = raw;
    else if (chunked) body = metered(raw, bodyLimitBytes, exchange.fail);
    if (body) continueIfExpected(raw, res);
    exchange.start(client.send({ origin, method, path, headers, body, chunked }, exchange.handler));
  }

  return (request, reply, upstream, caller, extra) => {
    try {
      send(request, reply.raw, upstream, caller, extra);
    } catch (error) {
      sendRawError(reply.raw, toPlatformError(error), request.id);
    }
  };
}

/** One request on its way: the upstream's answer goes to `res`, and whatever goes wrong ends both sides. */
function createExchange(
  request: FastifyRequest,
  res: ServerResponse,
  upstream: Upstream,
  deps: ForwarderDeps,
  extra: readonly string[] | null,
) {
  let call: UpstreamCall | undefined;
  let head: ResponseHead | undefined;
  let received = 0;
  let over = false;

  function fail(error: PlatformError): void {
    if (over) return;
    over = true;
    call?.abort();
    if (res.headersSent) cutShort();
    else sendRawError(res, error, request.id);
  }
  /** The client must see that the answer is not whole: its framing stays unfinished. */
  function cutShort(): void {
    res.destroy();
    request.server.kit.account(request, res.statusCode);
  }
  function writeHead({ status, headers }: ResponseHead): void {
    if (request.server.kit.draining) headers.push('connection', 'close');
    res.writeHead(status, headers);
  }
  function finish(chunk: Buffer | undefined): void {
    over = true;
    if (!res.headersSent) writeHead(head!);
    if (chunk === undefined) res.end();
    // As text it leaves in one write with the head.
    else if (chunk.length < SMALL_BYTES) res.end(chunk.toString('latin1'), 'latin1');
    else res.end(chunk);
  }
  const handler: UpstreamHandler = {
    onHead(status, rawHeaders) {
      deps.count(upstream.name, status);
      head = responseHead(status, rawHeaders, request.id, extra);
      // A short body is close behind: its head waits for it. A stream's must not.
      const { contentLength } = head;
      if (contentLength !== null && contentLength < SMALL_BYTES) return;
      writeHead(head);
      res.flushHeaders();
    },
    onData(chunk) {
      received += chunk.length;
      if (received === head!.contentLength) {
        finish(chunk);
        return true;
      }
      if (!res.headersSent) writeHead(head!);
      return res.write(chunk);
    },
    onEnd() {
      if (!over) finish(undefined);
    },
    onError(error) {
      if (over) return;
      if (!head) deps.count(upstream.name, 'error');
      deps.logger.warn(`The ${upstream.name} service failed a call: ${error.message}`, {
        requestId: request.id,
        traceId: request.traceId,
        tenantId: request.caller?.namespaceId ?? '',
        meta: { upstream: upstream.name, error },
      });
      fail(upstreamError(upstream.name, error));
    },
  };
  res.on('drain', () => call?.resume());
  res.on('close', () => {
    if (over) return;
    over = true;
    call?.abort();
    request.server.kit.account(request, CLIENT_LEFT);
  });
  return {
    handler,
    fail,
    start(started: UpstreamCall) {
      call = started;
      if (over) started.abort();
    },
  };
}

/** What logs and metrics say of a client that left before its answer, as nginx does. */
const CLIENT_LEFT = 499;
const SMALL_BYTES = 16 * 1024;

interface Framing {
  /** As sent; null: there is no body, or one in chunks. */
  contentLength: string | null;
  chunked: boolean;
}

/** How the body is delimited. Node has refused what is malformed or ambiguous; the rest is what we do not do. */
function framingOf({ headers }: IncomingMessage, limit: number): Framing {
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (coding.toLowerCase() === 'chunked') return { contentLength: null, chunked: true };
    throw new PlatformError('NOT_IMPLEMENTED', 'The only transfer coding taken here is "chunked".', CLOSE);
  }
  if (length === undefined) return { contentLength: null, chunked: false };
  if (Number(length) > limit) throw tooLarge(limit);
  return { contentLength: length, chunked: false };
}

/** A body of unannounced length, counted as it passes. */
function metered(raw: IncomingMessage, limit: number, fail: (error: PlatformError) => void): Readable {
  let seen = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      if (seen > limit) fail(tooLarge(limit));
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

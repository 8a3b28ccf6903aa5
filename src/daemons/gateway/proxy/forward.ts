import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendRawError } from '../../../http/index.ts';
import { codeOf, PlatformError, toPlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import { traceparentOf } from '../../../kit/trace.ts';
import type { Principal } from '../domain/authenticator.ts';
import type { CountUpstreamRequest } from '../metrics.ts';
import { createRequestHeaders } from './request-headers.ts';
import { type ResponseHead, responseHead } from './response-headers.ts';
import type { UpstreamCall, UpstreamClient, UpstreamHandler } from './upstream-client.ts';
import type { Upstream } from './upstreams.ts';

export interface ForwarderDeps {
  client: UpstreamClient;
  internalSecret: string;
  bodyLimitBytes: number;
  count: CountUpstreamRequest;
  logger: Logger;
}

/** Hands an authenticated request to its upstream and its answer back; answers errors itself. Never throws. */
export type Forward = (
  request: FastifyRequest,
  reply: FastifyReply,
  upstream: Upstream,
  caller: Principal,
) => void;

export function createForwarder(deps: ForwarderDeps): Forward {
  const headersFor = createRequestHeaders(deps.internalSecret);

  function send(request: FastifyRequest, reply: FastifyReply, upstream: Upstream, caller: Principal): void {
    const { raw } = request;
    const contentLength = raw.headers['content-length'] ?? null;
    if (Number(contentLength ?? 0) > deps.bodyLimitBytes) throw tooLarge(deps.bodyLimitBytes);
    const withBody = hasBody(raw);
    const headers = headersFor({
      rawHeaders: raw.rawHeaders,
      connection: raw.headers.connection,
      caller,
      requestId: request.id,
      traceId: request.traceId,
      traceparent: traceparentOf(raw.headers, request.traceId),
      forwardedFor: request.ip,
      forwardedHost: request.host,
      forwardedProto: request.protocol === 'https' ? 'https' : 'http',
      contentLength: withBody ? contentLength : null,
    });
    if (raw.headers.expect !== undefined) reply.raw.writeContinue();
    const exchange = createExchange(request, reply.raw, upstream, deps);
    const body = withBody ? bodyOf(raw, deps.bodyLimitBytes, exchange.fail) : null;
    const path = upstream.basePath + raw.url!;
    exchange.start(
      deps.client.send(
        { origin: upstream.origin(), method: request.method, path, headers, body },
        exchange.handler,
      ),
    );
  }

  return (request, reply, upstream, caller) => {
    try {
      send(request, reply, upstream, caller);
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
) {
  let call: UpstreamCall | undefined;
  let head: ResponseHead | undefined;
  let received = 0;
  let over = false;

  function fail(error: PlatformError): void {
    if (over) return;
    over = true;
    call?.abort();
    if (res.headersSent) res.destroy();
    else sendRawError(res, error, request.id);
  }
  const handler: UpstreamHandler = {
    onHead(status, rawHeaders) {
      deps.count(upstream.name, status);
      head = responseHead(status, rawHeaders, request.id);
      // Kept back until the first bytes come along, so that head and body leave in one write.
      if (head.contentLength === null || head.contentLength > SMALL_BODY) res.writeHead(status, head.headers);
    },
    onData(chunk) {
      received += chunk.length;
      const { contentLength } = head!;
      if (received === contentLength) {
        finish(chunk);
        return true;
      }
      if (!res.headersSent) res.writeHead(head!.status, head!.headers);
      return res.write(chunk);
    },
    onEnd() {
      if (!over) finish();
    },
    onError(error) {
      if (!res.headersSent) deps.count(upstream.name, 'error');
      deps.logger.warn(`The ${upstream.name} service failed a call: ${error.message}`, {
        requestId: request.id,
        traceId: request.traceId,
        meta: { upstream: upstream.name, error },
      });
      fail(upstreamError(upstream, error));
    },
  };
  function finish(chunk?: Buffer): void {
    over = true;
    if (!res.headersSent) res.writeHead(head!.status, head!.headers);
    if (chunk) res.end(chunk);
    else res.end();
  }
  res.on('drain', () => call?.resume());
  res.on('close', () => {
    if (over) return;
    over = true;
    call?.abort();
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

const SMALL_BODY = 64 * 1024;

function hasBody(raw: IncomingMessage): boolean {
  const length = raw.headers['content-length'];
  return raw.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** The body as it streams in; one of unannounced length is counted as it passes. */
function bodyOf(raw: IncomingMessage, limit: number, fail: (error: PlatformError) => void): Readable {
  if (raw.headers['content-length'] !== undefined) return raw;
  let seen = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      if (seen > limit) fail(tooLarge(limit));
      else done(null, chunk);
    },
  });
  return raw.pipe(meter);
}

function tooLarge(limit: number): PlatformError {
  return new PlatformError('PAYLOAD_TOO_LARGE', `The request body is larger than ${limit} bytes.`, {
    details: { limitBytes: limit },
    headers: { connection: 'close' },
  });
}

function upstreamError({ name }: Upstream, error: Error): PlatformError {
  if (error instanceof PlatformError) return error;
  if (codeOf(error) === 'UND_ERR_HEADERS_TIMEOUT') {
    return new PlatformError('UPSTREAM_TIMEOUT', `The ${name} service did not answer in time.`, {
      cause: error,
    });
  }
  return new PlatformError(
    'UPSTREAM_UNAVAILABLE',
    `The ${name} service cannot be reached; \`svc status\` shows whether it runs.`,
    { cause: error },
  );
}

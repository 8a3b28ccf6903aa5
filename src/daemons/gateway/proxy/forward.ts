import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { continueIfExpected, endUnread, unknownTransferCoding } from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import { traceparentOf } from '../../../kit/telemetry/trace.ts';
import { atTurnEnd } from '../../../kit/time/turn-end.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { TimeoutFor } from '../domain/route-timeouts.ts';
import type { CountUpstreamRequest } from '../metrics.ts';
import { HeldAnswer, type RecordEnd } from './held-answer.ts';
import { account, answerError, type ProxiedCall } from './proxied-call.ts';
import { createRequestHeaders, type ForwardedCaller } from './request-headers.ts';
import { type ResponseHead, responseHead } from './response-headers.ts';
import {
  type UpstreamCall,
  type UpstreamClient,
  type UpstreamHandler,
  upstreamError,
} from './upstream/index.ts';

export interface ForwarderDeps {
  client: UpstreamClient;
  internalSecret: string;
  admins: Pick<Admins, 'is'>;
  bodyLimitBytes: number;
  timeoutFor: TimeoutFor;
  count: CountUpstreamRequest;
}

/**
 * Forwards an authenticated call and sends the response or an error. Never throws. `extra` is a flat list of names and
 * values of additional response headers. With `record`, the answer waits until the call is recorded.
 */
export type Forward = (
  call: ProxiedCall,
  acting: ForwardedCaller,
  extra: readonly string[] | null,
  record?: RecordEnd,
) => void;

export function createForwarder(deps: ForwarderDeps): Forward {
  const { client, internalSecret, admins, bodyLimitBytes, timeoutFor, count } = deps;
  const headersFor = createRequestHeaders(internalSecret, admins);

  return (call, caller, extra, record) => {
    const { request, upstream, requestId, traceId, spanId } = call;
    const answer = new Answer(call, count, extra);
    try {
      const { contentLength, chunked } = framingOf(request, bodyLimitBytes);
      const headers = headersFor({
        rawHeaders: request.rawHeaders,
        connection: request.headers.connection,
        caller,
        requestId,
        traceId,
        traceparent: traceparentOf(request.headers, traceId, spanId),
        forwardedFor: call.client.ip,
        forwardedHost: call.client.host,
        forwardedProto: call.client.proto,
        contentLength,
      });
      const origin = upstream.origin();
      const path = upstream.basePath + request.url!;
      let body: Readable | null = null;
      const hold = record && heldBy(answer, record, call);
      if (hold && (contentLength !== null || chunked))
        body = metered(request, bodyLimitBytes, answer, hold.chunks);
      else if (contentLength !== null) body = request;
      else if (chunked) body = metered(request, bodyLimitBytes, answer);
      if (body) continueIfExpected(request, call.response);
      const method = request.method!;
      const timeoutMs = timeoutFor(method, request.url!);
      answer.begin(
        client.send(
          { origin, method, path, headers, body, contentLength, timeoutMs },
          hold?.handler ?? answer,
        ),
      );
    } catch (error) {
      answer.fail(toPlatformError(error));
    }
  };
}

/** Status logged when the client disconnects (nginx convention). */
const CLIENT_CLOSED_REQUEST = 499;
const SMALL_BYTES = 16 * 1024;

/**
 * Sends one upstream response to the client. If the client or the upstream disconnects, the call ends on both sides. A
 * class is faster than creating closures for each request.
 */
class Answer implements UpstreamHandler {
  private readonly call: ProxiedCall;
  private readonly count: CountUpstreamRequest;
  private readonly extra: readonly string[] | null;
  private upstreamCall: UpstreamCall | undefined;
  private head: ResponseHead | undefined;
  private received = 0;
  private lastChunk: Buffer | undefined;
  /** Whether the upstream's response has ended. Its last chunk might not have been written to the client yet. */
  private complete = false;
  private answeredOrAborted = false;

  constructor(call: ProxiedCall, count: CountUpstreamRequest, extra: readonly string[] | null) {
    this.call = call;
    this.count = count;
    this.extra = extra;
    call.response.on('close', () => this.onClientGone());
  }

  begin(upstreamCall: UpstreamCall): void {
    this.upstreamCall = upstreamCall;
    if (this.answeredOrAborted) upstreamCall.abort();
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    const { upstream, requestId, response } = this.call;
    this.count(upstream.name, status);
    this.head = responseHead(status, rawHeaders, requestId, this.extra);
    // The head of a short response is written together with the body, to save a write.
    const { contentLength } = this.head;
    if (contentLength !== null && contentLength < SMALL_BYTES) return;
    this.writeHead();
    response.flushHeaders();
  }

  onData(chunk: Buffer): boolean {
    this.received += chunk.length;
    if (this.received === this.head!.contentLength) {
      this.finish(chunk);
      return true;
    }
    const { response } = this.call;
    if (!response.headersSent) this.writeHead();
    if (response.write(chunk)) return true;
    response.once('drain', () => this.upstreamCall?.resume());
    return false;
  }

  onEnd(): void {
    if (!this.complete) this.finish(undefined);
  }

  onError(error: Error): void {
    if (this.answeredOrAborted || this.complete) return;
    const { kit, upstream, requestId, traceId, caller } = this.call;
    if (!this.head) this.count(upstream.name, 'error');
    kit.logger.warn(`The ${upstream.name} service failed a call: ${error.message}`, {
      requestId,
      traceId,
      tenantId: caller?.namespaceId ?? '',
      meta: { upstream: upstream.name, error },
    });
    this.fail(upstreamError(upstream.name, error));
  }

  fail(error: PlatformError): void {
    if (this.answeredOrAborted) return;
    this.answeredOrAborted = true;
    this.upstreamCall?.abort();
    const { response } = this.call;
    if (!response.headersSent) {
      answerError(this.call, error, this.extra);
      return;
    }
    // Closing the connection before the end of the body lets the client detect that the response is incomplete.
    response.destroy();
    account(this.call, response.statusCode);
  }

  private finish(lastChunk: Buffer | undefined): void {
    if (!this.call.response.headersSent) this.writeHead();
    this.complete = true;
    this.lastChunk = lastChunk;
    endSoon(this);
  }

  end(): void {
    if (this.answeredOrAborted) return;
    this.answeredOrAborted = true;
    const { lastChunk } = this;
    const { request, response } = this.call;
    // If the connection closed with unread request data, the connection would be reset before the client reads the
    // response.
    if (!request.complete && !response.shouldKeepAlive) endUnread(request, response, lastChunk ?? '');
    else if (lastChunk === undefined) response.end();
    // Node writes headers and body together only if the body is a string. A short last chunk is therefore converted to
    // a string.
    else if (lastChunk.length < SMALL_BYTES) response.end(lastChunk.toString('latin1'), 'latin1');
    else response.end(lastChunk);
    // The rest of the request body is discarded, because the next request follows the body on the same connection.
    if (!request.complete) request.unpipe().resume();
    account(this.call, response.statusCode);
  }

  private writeHead(): void {
    const { status, headers } = this.head!;
    const { kit, response } = this.call;
    if (kit.draining) headers.push('connection', 'close');
    response.writeHead(status, headers);
  }

  private onClientGone(): void {
    if (this.answeredOrAborted) return;
    this.answeredOrAborted = true;
    this.upstreamCall?.abort();
    account(this.call, CLIENT_CLOSED_REQUEST);
  }
}

const endSoon = atTurnEnd((answer: Answer) => answer.end());

interface Framing {
  /** Content-Length in bytes, or null for an empty or chunked body. */
  contentLength: number | null;
  chunked: boolean;
}

const NO_BODY: Framing = { contentLength: null, chunked: false };
const CHUNKED: Framing = { contentLength: null, chunked: true };

/** Determines how the request body is delimited. Node has already rejected malformed framing headers. */
function framingOf({ headers }: IncomingMessage, limit: number): Framing {
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (coding.toLowerCase() === 'chunked') return CHUNKED;
    throw unknownTransferCoding();
  }
  if (length === undefined) return NO_BODY;
  const contentLength = Number(length);
  if (contentLength > limit) throw tooLarge(limit);
  return { contentLength, chunked: false };
}

/** Holds an answer back until the call is recorded. `chunks` must receive the request body. */
function heldBy(
  answer: Answer,
  record: RecordEnd,
  { response }: ProxiedCall,
): { handler: HeldAnswer; chunks: Buffer[] } {
  const chunks: Buffer[] = [];
  const handler = new HeldAnswer(answer, record, chunks);
  response.on('close', () => handler.onClientGone());
  return { handler, chunks };
}

/**
 * Returns a stream of a request body. The call fails when the body exceeds `limit` bytes. `copies` receives the chunks
 * of the body.
 */
function metered(raw: IncomingMessage, limit: number, answer: Answer, copies?: Buffer[]): Readable {
  let seen = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      if (seen > limit) answer.fail(tooLarge(limit));
      else {
        copies?.push(chunk);
        done(null, chunk);
      }
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

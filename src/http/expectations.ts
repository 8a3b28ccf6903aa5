import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { HEADERS } from '../contracts/index.ts';
import { errorBody, PlatformError } from '../kit/errors/errors.ts';
import type { Random } from '../kit/security/random.ts';
import { saneId } from '../kit/telemetry/trace.ts';
import type { Http } from './http-kit.ts';
import { protocolFault } from './request-line.ts';

/**
 * Delays `100 Continue` until a handler reads the body. The client of a rejected request then never sends the body.
 * Code that reads a body without Fastify must call `continueIfExpected`.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}

/** Sends the deferred `100 Continue` before Fastify reads a body, unless `Content-Length` exceeds the body limit. */
export function continueWhenWanted(http: Http): void {
  http.addHook('preParsing', (request, reply, _payload, done) => {
    const { bodyLimit } = request.routeOptions;
    if (expectsContinue(request.raw) && Number(request.headers['content-length']) > bodyLimit) {
      done(bodyTooLarge(bodyLimit));
      return;
    }
    continueIfExpected(request.raw, reply.raw);
    done();
  });
}

export function continueIfExpected(request: IncomingMessage, response: ServerResponse): void {
  if (expectsContinue(request)) response.writeContinue();
}

/** Returns whether the client waits for `100 Continue`. `Expect` is ignored in HTTP/1.0 requests (RFC 9110 10.1.1). */
function expectsContinue({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor > 0;
}

function bodyTooLarge(limitBytes: number): PlatformError {
  return new PlatformError('PAYLOAD_TOO_LARGE', `The request body exceeds ${limitBytes} bytes.`, {
    details: { limitBytes },
  });
}

/**
 * Answers `Expect` headers other than `100-continue` with 417. The connection closes, because the client might still
 * send a body.
 */
export function refuseExpectations(server: Server, random: Random): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const error =
      protocolFault(request) ??
      new PlatformError('EXPECTATION_FAILED', 'The only supported expectation is "100-continue".');
    const body = JSON.stringify(errorBody(error));
    response
      .writeHead(error.status, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
        connection: 'close',
        [HEADERS.requestId]: saneId(request.headers[HEADERS.requestId], random),
      })
      .end(body);
  });
}

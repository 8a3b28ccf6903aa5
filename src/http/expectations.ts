import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http } from './server.ts';

/**
 * `Expect: 100-continue` is answered once somebody wants the body, not before: a client that is refused keeps it.
 * Whoever reads a body past Fastify calls `continueIfExpected` itself.
 */
export function continueWhenWanted(http: Http): void {
  const { server } = http;
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
  http.addHook('preParsing', (request, reply, _payload, done) => {
    continueIfExpected(request.raw, reply.raw);
    done();
  });
}

export function continueIfExpected(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect !== undefined) response.writeContinue();
}

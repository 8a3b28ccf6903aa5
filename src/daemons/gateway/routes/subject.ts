import type { FastifyRequest } from 'fastify';
import type { Subject } from '../domain/identity/authenticator.ts';

/** Returns the request data that authentication uses. */
export function subjectOf(request: FastifyRequest): Subject {
  return {
    rawHeaders: request.raw.rawHeaders,
    requestId: request.id,
    traceId: request.traceId,
    // A getter, because determining the address behind trusted proxies takes time and only refusals use it.
    get ip() {
      return request.ip;
    },
  };
}

import type { FastifyRequest } from 'fastify';
import type { Subject } from '../domain/identity/authenticator.ts';

/** The request as authentication looks at it. */
export function subjectOf(request: FastifyRequest): Subject {
  return {
    rawHeaders: request.raw.rawHeaders,
    requestId: request.id,
    traceId: request.traceId,
    // A getter, because finding the address behind trusted proxies is work that only a refusal needs.
    get ip() {
      return request.ip;
    },
  };
}

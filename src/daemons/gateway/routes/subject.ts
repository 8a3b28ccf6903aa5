import type { FastifyRequest } from 'fastify';
import type { Subject } from '../domain/identity/authenticator.ts';

export function subjectOf(request: FastifyRequest): Subject {
  return {
    rawHeaders: request.raw.rawHeaders,
    requestId: request.id,
    traceId: request.traceId,
    // The address is computed on demand, because only rejections need an address.
    get ip() {
      return request.ip;
    },
  };
}

import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../../contracts/index.ts';
import type { Counted } from '../domain/request-limits.ts';

/** Whom an authenticated request counts against. */
export function countedOf(request: FastifyRequest, { namespaceId }: Caller): Counted {
  return {
    token: request.raw.headers.authorization ?? `(none) ${request.ip}`,
    namespaceId,
    get ip() {
      return request.ip;
    },
  };
}

import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../../contracts/index.ts';
import { tokenText } from '../domain/identity/bearer.ts';
import type { Counted } from '../domain/request-limits.ts';

/** Whom an authenticated request counts against. */
export function countedOf(request: FastifyRequest, { namespaceId }: Caller): Counted {
  return {
    get token() {
      const { authorization } = request.raw.headers;
      return authorization === undefined ? `(none) ${request.ip}` : tokenText(authorization);
    },
    namespaceId,
    get ip() {
      return request.ip;
    },
  };
}

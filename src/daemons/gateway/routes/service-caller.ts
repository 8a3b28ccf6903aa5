import type { FastifyRequest } from 'fastify';
import { HEADERS } from '../../../contracts/index.ts';
import { safeEqual, serviceKey } from '../../../kit/security/keys.ts';

/** Whether the caller is a service. The internal secret does not prove this, because other callers may have it too. */
export function isService(request: FastifyRequest, internalSecret: string): boolean {
  const shown = request.headers[HEADERS.serviceKey];
  return typeof shown === 'string' && safeEqual(shown, serviceKey(internalSecret));
}

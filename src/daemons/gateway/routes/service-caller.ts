import type { FastifyRequest } from 'fastify';
import { HEADERS } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { safeEqual, serviceKey } from '../../../kit/security/keys.ts';

/**
 * Returns whether the caller has the service key. The internal secret alone is not sufficient, because callers other
 * than services can have the internal secret.
 */
export function isService(request: FastifyRequest, internalSecret: string): boolean {
  const shown = request.headers[HEADERS.serviceKey];
  return typeof shown === 'string' && safeEqual(shown, serviceKey(internalSecret));
}

/**
 * Throws FORBIDDEN unless the caller has the internal secret and the service key. Only gateways and services have both.
 */
export function requireGateway(request: FastifyRequest, internalSecret: string): void {
  const shown = request.headers[HEADERS.internalSecret];
  const isOurs = typeof shown === 'string' && safeEqual(shown, internalSecret);
  if (isOurs && isService(request, internalSecret)) return;
  const isMissing = shown === undefined;
  reportRefusal(request, {
    reasonCode: isMissing ? 'MISSING_SECRET' : 'WRONG_SECRET',
    message: `A request from ${request.ip} in the name of a gateway was refused`,
  });
  throw new PlatformError(
    'FORBIDDEN',
    'Only the gateways and services of this platform may call this path; they send X-Internal-Secret and the service key.',
  );
}

export interface Refusal {
  reasonCode: string;
  message: string;
}

/** Reports that an internal path refused its caller. */
export function reportRefusal(request: FastifyRequest, { reasonCode, message }: Refusal): void {
  request.server.kit.logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode,
      message,
      outcome: 'refused',
      evidence: { ip: request.ip },
    },
    { requestId: request.id, traceId: request.traceId },
  );
}

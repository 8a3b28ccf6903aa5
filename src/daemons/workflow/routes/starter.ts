import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Starter } from '../domain/starts/run-starter.ts';

export function starterOf(caller: Caller, request: FastifyRequest): Starter {
  return {
    tenantId: caller.namespaceId,
    hostId: caller.hostId,
    requestId: request.id,
    traceId: request.traceId,
    parentSpanId: request.spanId,
  };
}

/** The field of the body, or the header of that name. */
export function idempotencyKeyOf(
  body: { idempotencyKey?: string | undefined },
  request: FastifyRequest,
): string | undefined {
  const header = request.headers['idempotency-key'];
  const key = body.idempotencyKey ?? (typeof header === 'string' ? header : undefined);
  if (key !== undefined && (key.length === 0 || key.length > 256))
    throw new PlatformError('VALIDATION_ERROR', 'Idempotency-Key must have 1 to 256 characters.');
  return key;
}

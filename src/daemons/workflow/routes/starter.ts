import type { FastifyRequest } from 'fastify';
import { type Caller, HEADERS } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Starter } from '../domain/starts/run-admission.ts';

export function starterOf(caller: Caller, request: FastifyRequest): Starter {
  return {
    tenantId: caller.namespaceId,
    hostId: caller.hostId,
    role: caller.role,
    isAdministrator: caller.isAdministrator,
    via: caller.via,
    requestId: request.id,
    traceId: request.traceId,
    parentSpanId: request.spanId,
    // Node joins repeated headers of this name into one string, so the cast is safe.
    deliveryId: (request.headers[HEADERS.deliveryId] as string | undefined) ?? null,
  };
}

/**
 * Returns the idempotency key from the body or the `Idempotency-Key` header. Throws VALIDATION_ERROR for a header of
 * invalid length, or if the two keys differ.
 */
export function idempotencyKeyOf(
  body: { idempotencyKey?: string | undefined },
  request: FastifyRequest,
): string | undefined {
  // Node joins repeated `Idempotency-Key` headers into one string, so the cast is safe.
  const header = request.headers['idempotency-key'] as string | undefined;
  if (header !== undefined && (header.length === 0 || header.length > 256))
    throw new PlatformError('VALIDATION_ERROR', 'Idempotency-Key must have 1 to 256 characters.');
  const { idempotencyKey: field = header } = body;
  if (header !== undefined && field !== header)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The header Idempotency-Key says "${header}", the field idempotencyKey of the body "${field}"; send one of them, or the same key in both.`,
      { details: { header, field } },
    );
  return field;
}

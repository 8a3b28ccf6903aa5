import type { FastifyRequest } from 'fastify';
import type { Logger } from '../kit/logger.ts';

/** Logs one line per finished request. `route` is the pattern: a raw path may carry what a log must not. */
export function createAccessLog(logger: Logger) {
  return (request: FastifyRequest, route: string, status: number, durationMs: number): void => {
    logger.access(request.method, route, status, durationMs, {
      requestId: request.id,
      traceId: request.traceId,
      spanId: request.spanId,
      tenantId: request.caller?.namespaceId ?? '',
    });
  };
}

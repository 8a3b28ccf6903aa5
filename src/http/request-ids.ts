import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS } from '../contracts/index.ts';
import type { Random } from '../kit/security/random.ts';
import { newSpanId, saneId, spanIdOf, traceIdOf } from '../kit/telemetry/trace.ts';

export interface RequestIds {
  requestId: string;
  traceId: string;
  /** Span id of the request. Calls made while the request is handled are child spans. */
  spanId: string;
}

/**
 * Returns the request, trace and span ids of a request. Valid ids from the client are kept. If the client sends no ids,
 * all ids derive from one UUID, because generating a UUID is slow.
 */
export function idsOf(
  headers: IncomingHttpHeaders,
  random: Random,
  requestId: string = saneId(headers[HEADERS.requestId], random),
): RequestIds {
  const isGenerated = headers[HEADERS.requestId] === undefined;
  const startsTrace = headers[HEADERS.traceId] === undefined && headers.traceparent === undefined;
  return {
    requestId,
    traceId: isGenerated && startsTrace ? requestId.replaceAll('-', '') : traceIdOf(headers, random),
    spanId: isGenerated ? spanIdOf(requestId) : newSpanId(random),
  };
}

/** Sets the `X-Request-Id` response header, and the trace and span ids of the request. Fastify sets `request.id`. */
export function setRequestIds(request: FastifyRequest, reply: FastifyReply, random: Random): void {
  reply.header(HEADERS.requestId, request.id);
  const { traceId, spanId } = idsOf(request.headers, random, request.id);
  request.traceId = traceId;
  request.spanId = spanId;
}

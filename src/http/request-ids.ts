import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { HEADERS } from '../contracts/index.ts';
import type { Random } from '../kit/security/random.ts';
import { newSpanId, saneId, spanIdOf, traceIdOf } from '../kit/telemetry/trace.ts';

/** Ids of a request in logs, traces and responses. */
export interface RequestIds {
  requestId: string;
  traceId: string;
  /** Id of the request's span, which is the parent of calls made for the request. */
  spanId: string;
}

/**
 * Takes the ids sent by the client if valid, else creates them. Without client ids, one UUID serves request, trace and
 * span: creating three would cost more than routing.
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

/** Sets trace and span id of a Fastify request, which already has its request id. */
export function setTrace(request: FastifyRequest, random: Random): void {
  const { traceId, spanId } = idsOf(request.headers, random, request.id);
  request.traceId = traceId;
  request.spanId = spanId;
}

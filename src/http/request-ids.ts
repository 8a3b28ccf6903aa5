import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { HEADERS } from '../contracts/index.ts';
import type { Random } from '../kit/random.ts';
import { newSpanId, saneId, spanIdOf, traceIdOf } from '../kit/trace.ts';

/** What a request is called in logs, traces and answers. */
export interface RequestIds {
  requestId: string;
  traceId: string;
  /** Its own span's: what calls made for it name as their parent. */
  spanId: string;
}

/**
 * The ids of a request: those that its client sent, where they are sane, else new ones. Where it sent none, one UUID
 * names the request, its trace and its span: making three costs more than routing does.
 */
export function idsOf(
  headers: IncomingHttpHeaders,
  random: Random,
  requestId: string = saneId(headers[HEADERS.requestId], random),
): RequestIds {
  const isOurs = headers[HEADERS.requestId] === undefined;
  const begins = headers[HEADERS.traceId] === undefined && headers.traceparent === undefined;
  return {
    requestId,
    traceId: isOurs && begins ? requestId.replaceAll('-', '') : traceIdOf(headers, random),
    spanId: isOurs ? spanIdOf(requestId) : newSpanId(random),
  };
}

/** Gives the framework's request its trace; its id it has already. */
export function nameTrace(request: FastifyRequest, random: Random): void {
  const { traceId, spanId } = idsOf(request.headers, random, request.id);
  request.traceId = traceId;
  request.spanId = spanId;
}

import type { FastifyRequest } from 'fastify';
import { HEADERS } from '../contracts/index.ts';
import type { Random } from '../kit/random.ts';
import { spanIdOf, traceIdOf } from '../kit/trace.ts';

/**
 * The trace that a request belongs to, and its own span. Where the client sent no ids, the one UUID of the request names
 * all three: making three costs more than routing does.
 */
export function nameTrace(request: FastifyRequest, random: Random): void {
  const { headers, id } = request;
  const isOurs = headers[HEADERS.requestId] === undefined;
  const begins = headers[HEADERS.traceId] === undefined && headers.traceparent === undefined;
  request.traceId = isOurs && begins ? id.replaceAll('-', '') : traceIdOf(headers, random);
  if (isOurs) request.ownSpanId = spanIdOf(id);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HTTPMethods } from 'fastify';
import type { Caller } from '../../../contracts/index.ts';
import type { ClientSide, HttpKit, RequestIds } from '../../../http/index.ts';
import type { Upstream } from './upstreams.ts';

/** TRACE would show a page what headers we add; CONNECT is no request to an upstream. */
export const PROXIED_METHODS: readonly HTTPMethods[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
];

/** A request on its way to an upstream, whether the framework has seen it or not. */
export interface ProxiedCall extends RequestIds {
  kit: HttpKit;
  request: IncomingMessage;
  response: ServerResponse;
  upstream: Upstream;
  /** The pattern that its path matched. */
  route: string;
  /** `performance.now()` at the request line. */
  startedAt: number;
  client: ClientSide;
  /** What its answer tells pages of other origins, flat; null: nothing. */
  corsHeaders: readonly string[] | null;
  /** Null until it is known who calls. */
  caller: Caller | null;
}

/** Counts and logs a call that was answered. */
export function account(call: ProxiedCall, status: number): void {
  call.kit.accountAnswered({
    method: call.request.method!,
    route: call.route,
    status,
    startedAt: call.startedAt,
    requestId: call.requestId,
    traceId: call.traceId,
    spanId: call.spanId,
    tenantId: call.caller?.namespaceId ?? '',
    traceparent: call.request.headers.traceparent,
  });
}

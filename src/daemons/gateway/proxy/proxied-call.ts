import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../../../contracts/index.ts';
import { type ClientSide, type HttpKit, type RequestIds, sendRawError } from '../../../http/index.ts';
import type { PlatformError } from '../../../kit/errors/errors.ts';
import type { Upstream } from './upstreams.ts';

/**
 * Methods that are forwarded to upstreams. TRACE is excluded, because its response would reveal headers that the
 * gateway adds. CONNECT is excluded, because CONNECT opens a tunnel to another server.
 */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** A request that is forwarded to an upstream. */
export interface ProxiedCall extends RequestIds {
  kit: HttpKit;
  request: IncomingMessage;
  response: ServerResponse;
  upstream: Upstream;
  /** The matched route pattern, which metrics and logs use instead of the path. */
  route: string;
  /** `performance.now()` when the request line arrived. */
  startedAt: number;
  client: ClientSide;
  /** CORS response headers as a flat list of names and values. Null if the response has no CORS headers. */
  corsHeaders: readonly string[] | null;
  /** Caller of the request, or null before authentication. */
  caller: Caller | null;
}

/** Records a call in metrics and logs. */
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

/** Sends an error response and records the call. `extra` is a flat list of names and values of additional headers. */
export function answerError(call: ProxiedCall, error: PlatformError, extra: readonly string[] | null): void {
  sendRawError(call.response, error, call.requestId, extra, call.kit.draining);
  account(call, error.status);
}

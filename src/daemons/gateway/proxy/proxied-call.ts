import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../../../contracts/index.ts';
import { type ClientSide, type HttpKit, type RequestIds, sendRawError } from '../../../http/index.ts';
import type { PlatformError } from '../../../kit/errors/errors.ts';
import type { Upstream } from './upstreams.ts';

/** Without TRACE, which would reveal headers that the gateway adds, and CONNECT, which does not address an upstream. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** A request to forward, with its state. */
export interface ProxiedCall extends RequestIds {
  kit: HttpKit;
  request: IncomingMessage;
  response: ServerResponse;
  upstream: Upstream;
  /** The matched route pattern. */
  route: string;
  /** `performance.now()` at the request line. */
  startedAt: number;
  client: ClientSide;
  /** CORS headers as flat pairs; null: none. */
  corsHeaders: readonly string[] | null;
  /** Null until the call is authenticated. */
  caller: Caller | null;
}

/** Counts and logs an answered call. */
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

/** Sends an error and counts it; closes the connection during a drain. `extra`: flat pairs of more headers. */
export function answerError(call: ProxiedCall, error: PlatformError, extra: readonly string[] | null): void {
  sendRawError(call.response, error, call.requestId, extra, call.kit.draining);
  account(call, error.status);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../../../contracts/index.ts';
import { type ClientSide, type HttpKit, type RequestIds, sendRawError } from '../../../http/index.ts';
import type { PlatformError } from '../../../kit/errors/errors.ts';
import type { Upstream } from './upstreams.ts';

/**
 * Methods that are forwarded. TRACE would reveal headers that the gateway adds; CONNECT does not address an upstream.
 */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** A request to forward, with the state of its handling. */
export interface ProxiedCall extends RequestIds {
  kit: HttpKit;
  request: IncomingMessage;
  response: ServerResponse;
  upstream: Upstream;
  /** The matched route pattern. */
  route: string;
  /** `performance.now()` when the request line arrived. */
  startedAt: number;
  client: ClientSide;
  /** CORS response headers as a flat list of names and values; null for none. */
  corsHeaders: readonly string[] | null;
  /** The authenticated caller; null before authentication. */
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

/**
 * Sends an error response and counts it. Closes the connection while the gateway stops. `extra` is a flat list of names
 * and values of additional headers.
 */
export function answerError(call: ProxiedCall, error: PlatformError, extra: readonly string[] | null): void {
  sendRawError(call.response, error, call.requestId, extra, call.kit.draining);
  account(call, error.status);
}

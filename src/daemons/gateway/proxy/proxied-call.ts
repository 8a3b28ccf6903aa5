import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../../../contracts/index.ts';
import { type ClientSide, type HttpKit, type RequestIds, sendRawError } from '../../../http/index.ts';
import type { PlatformError } from '../../../kit/errors/errors.ts';
import type { Upstream } from './upstreams.ts';

/** TRACE would show a page what headers we add; CONNECT is no request to an upstream. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** A request on its way to an upstream. */
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
  /** Headers for pages of other origins, flat; null: none. */
  corsHeaders: readonly string[] | null;
  /** Null until the call is authenticated. */
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

/** Answers with an error and counts it; while the gateway drains, the connection ends with it. `extra`: more headers, flat. */
export function answerError(call: ProxiedCall, error: PlatformError, extra: readonly string[] | null): void {
  sendRawError(call.response, error, call.requestId, extra, call.kit.draining);
  account(call, error.status);
}

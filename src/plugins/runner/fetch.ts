import type { PlatformCalls } from './platform-calls.ts';
import { raceAbort } from './race-abort.ts';

/** A request in the form sent over the channel. The body is base64. */
export interface FetchRequest {
  url: string;
  method: string;
  headers: Array<[string, string]>;
  body: string | null;
  redirect: 'follow' | 'error' | 'manual';
  /** Ends the connection of a successful response after its headers. */
  discardBody?: boolean;
}

/**
 * Option of `ctx.fetch` for callers that need only the status and the headers of a successful response. A symbol, because
 * the option is not part of the standard `fetch`.
 */
export const DISCARD_BODY = Symbol('discardBody');

export interface FetchReply {
  url: string;
  status: number;
  statusText: string;
  headers: Array<[string, string]>;
  body: string;
  redirected: boolean;
}

/** HTTP statuses whose `Response` must not have a body, not even an empty body. */
const NULL_BODY = new Set([101, 103, 204, 205, 304]);

/**
 * Creates `ctx.fetch`, which has the signature of the standard `fetch`. The service sends the request and checks
 * redirects. Calls reject with a `PlatformCallError` or the reason of an aborted signal.
 */
export function createFetch(
  calls: PlatformCalls,
  executionId: string,
  signal: AbortSignal,
): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body ? Buffer.from(await request.arrayBuffer()).toString('base64') : null;
    const sent: FetchRequest = {
      url: request.url,
      method: request.method,
      headers: [...request.headers],
      body,
      redirect: request.redirect,
      ...(init && DISCARD_BODY in init ? { discardBody: init[DISCARD_BODY] === true } : {}),
    };
    const aborted = AbortSignal.any([request.signal, signal]);
    aborted.throwIfAborted();
    const reply = await raceAbort(calls.call(executionId, 'fetch', 'request', [sent]), aborted);
    return toResponse(reply as FetchReply);
  };
}

function toResponse(reply: FetchReply): Response {
  const body = NULL_BODY.has(reply.status) ? null : Buffer.from(reply.body, 'base64');
  const response = new Response(body, {
    status: reply.status,
    statusText: reply.statusText,
    headers: reply.headers,
  });
  // Handlers that follow redirects read `url` and `redirected`. The constructor of `Response` cannot set these
  // properties.
  Object.defineProperty(response, 'url', { value: reply.url });
  Object.defineProperty(response, 'redirected', { value: reply.redirected });
  return response;
}

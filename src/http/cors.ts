import type { IncomingMessage } from 'node:http';
import type { Http } from './http-kit.ts';

export interface CorsVerdict {
  /** Response headers as a flat list of alternating names and values. */
  headers: string[];
  /** Whether the request is a preflight request, which is answered without calling a route handler. */
  isPreflight: boolean;
}

/** Returns the CORS verdict for a request. Returns null if the request has no `Origin` header. */
export type JudgeOrigin = (request: IncomingMessage) => CorsVerdict | null;

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS =
  'authorization, content-type, x-request-id, x-trace-id, traceparent, x-svc-namespace, idempotency-key, last-event-id';
const EXPOSED =
  'x-request-id, x-webhook-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset';
const PREFLIGHT_SECONDS = '600';

/** CORS headers for origins that are not allowed. `Vary` prevents caches from sharing responses between origins. */
const OTHER_ORIGIN: CorsVerdict = { headers: ['vary', 'origin'], isPreflight: false };

/**
 * Returns a function that checks the origin of requests, or null if no origin is allowed. Calls from
 * other origins use no cookies, so `Access-Control-Allow-Credentials` is never sent.
 */
export function createOriginJudge(origins: readonly string[]): JudgeOrigin | null {
  if (origins.length === 0) return null;
  const allowed = new Set(origins.map((origin) => origin.replace(/\/$/, '')));
  return ({ method, headers }) => {
    const { origin } = headers;
    if (origin === undefined) return null;
    if (!allowed.has(origin)) return OTHER_ORIGIN;
    return {
      headers: [
        ...['access-control-allow-origin', origin],
        ...['vary', 'origin'],
        ...['access-control-expose-headers', EXPOSED],
      ],
      isPreflight: method === 'OPTIONS' && headers['access-control-request-method'] !== undefined,
    };
  };
}

/** Adds the CORS headers to responses of Fastify, and answers preflight requests for every path. */
export function allowOrigins(http: Http, judge: JudgeOrigin): void {
  http.addHook('onRequest', (request, reply, done) => {
    const verdict = judge(request.raw);
    if (!verdict) return done();
    const { headers } = verdict;
    for (let i = 0; i < headers.length; i += 2) reply.header(headers[i]!, headers[i + 1]);
    if (!verdict.isPreflight) return done();
    reply
      .code(204)
      .header('access-control-allow-methods', METHODS)
      .header('access-control-allow-headers', REQUEST_HEADERS)
      .header('access-control-max-age', PREFLIGHT_SECONDS)
      .send();
  });
}

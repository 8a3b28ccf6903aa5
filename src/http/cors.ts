import type { Http } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** CORS headers as a flat list, for responses that bypass Fastify; null: none. */
    corsHeaders: string[] | null;
  }
}

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS =
  'authorization, content-type, x-request-id, x-trace-id, traceparent, x-svc-namespace, idempotency-key, last-event-id';
const EXPOSED =
  'x-request-id, x-webhook-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset';
const PREFLIGHT_SECONDS = '600';

/** Adds CORS headers for the configured origins. Cookies are not used, so `Allow-Credentials` is never sent. */
export function allowOrigins(http: Http, origins: readonly string[]): void {
  http.decorateRequest('corsHeaders', null);
  if (origins.length === 0) return;
  const allowed = new Set(origins.map((origin) => origin.replace(/\/$/, '')));
  http.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    if (origin === undefined) return done();
    if (!allowed.has(origin)) {
      // Prevents caches from serving the response to another origin.
      request.corsHeaders = ['vary', 'origin'];
      reply.header('vary', 'origin');
      return done();
    }
    const headers = [
      'access-control-allow-origin',
      origin,
      'vary',
      'origin',
      'access-control-expose-headers',
      EXPOSED,
    ];
    request.corsHeaders = headers;
    for (let i = 0; i < headers.length; i += 2) reply.header(headers[i]!, headers[i + 1]);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined)
      return done();
    reply
      .code(204)
      .header('access-control-allow-methods', METHODS)
      .header('access-control-allow-headers', REQUEST_HEADERS)
      .header('access-control-max-age', PREFLIGHT_SECONDS)
      .send();
  });
}

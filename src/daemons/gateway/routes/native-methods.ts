import type { HTTPMethods } from 'fastify';
import { type Http, methodNotAllowed } from '../../../http/index.ts';
import { PROXIED_METHODS } from '../proxy/proxied-call.ts';
import { type Upstream, upstreamFor } from '../proxy/upstreams.ts';

/**
 * Answers 405 for unsupported methods of gateway paths below an upstream's prefix. Otherwise, the upstream would get
 * such requests. Must be mounted after all other routes of the gateway.
 */
export function nativeMethodRoutes(http: Http, { upstreams }: { upstreams: readonly Upstream[] }): void {
  const own = http.kit.routes.filter(({ path }) => upstreamFor(upstreams, path) !== undefined);
  for (const [url, routes] of Map.groupBy(own, ({ path }) => path)) {
    const taken = new Set(routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])));
    const others = PROXIED_METHODS.filter((method) => !taken.has(method)) as HTTPMethods[];
    const allowed = [...taken].sort();
    http.route({
      method: others,
      url,
      exposeHeadRoute: false,
      async onRequest(request) {
        request.caller = await http.kit.authenticate(request);
        throw methodNotAllowed(request.method, url, allowed);
      },
      handler: () => {
        throw new Error('onRequest refuses every request.');
      },
    });
  }
}

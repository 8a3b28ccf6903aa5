import type { HTTPMethods } from 'fastify';
import { type Http, methodNotAllowed } from '../../../http/index.ts';
import { PROXIED_METHODS } from '../proxy/proxied-call.ts';
import { type Upstream, upstreamFor } from '../proxy/upstreams.ts';

/**
 * A path of the gateway's own that lies below an upstream's prefix, called by a method that it does not take: 405 here,
 * instead of whatever the upstream says of a path that is not its own. Mounted after all of the gateway's own routes;
 * the router then finds these before the upstream's prefix.
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
        throw new Error('It is refused before its handler.');
      },
    });
  }
}

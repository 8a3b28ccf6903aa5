import findMyWay, { type HTTPMethod } from 'find-my-way';
import { ROUTER_OPTIONS } from '../../../http/index.ts';
import type { Upstream } from '../proxy/upstreams.ts';

/**
 * A route of the gateway. Metrics and logs contain its `pattern` instead of the path, because a path can contain
 * secrets.
 */
export type EdgeRoute =
  | { kind: 'native'; pattern: string }
  | { kind: 'delivery'; pattern: string }
  | { kind: 'source'; pattern: string }
  | { kind: 'proxied'; pattern: string; upstream: Upstream };

export interface EdgeMatch {
  route: EdgeRoute;
  params: Readonly<Record<string, string | undefined>>;
}

const NO_QUERY = {};

/**
 * Finds the route of a request by the same rules as Fastify. Static segments take precedence over parameters, and
 * parameters take precedence over wildcards.
 */
export class EdgeRouter {
  readonly #routes = findMyWay({ ...ROUTER_OPTIONS, querystringParser: () => NO_QUERY });

  add(methods: readonly string[], route: EdgeRoute): void {
    this.#routes.on([...methods] as HTTPMethod[], route.pattern, unused, route);
  }

  /**
   * Returns the route of a request. Returns undefined for an unknown path or malformed percent-encoding. `url` contains
   * only the path and the query.
   */
  find(method: string, url: string): EdgeMatch | undefined {
    const found = this.#routes.find(method as HTTPMethod, url);
    return found ? { route: found.store as EdgeRoute, params: found.params } : undefined;
  }
}

function unused(): never {
  throw new Error('Requests are served by their route, not by the router.');
}

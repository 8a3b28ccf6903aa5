import findMyWay, { type HTTPMethod } from 'find-my-way';
import { ROUTER_OPTIONS } from '../../../http/index.ts';
import type { Upstream } from '../proxy/upstreams.ts';

/** Destination of a request. Metrics and logs use its `pattern`, because paths may contain secrets. */
export type EdgeRoute =
  | { kind: 'native'; pattern: string }
  | { kind: 'delivery'; pattern: string }
  | { kind: 'proxied'; pattern: string; upstream: Upstream };

export interface EdgeMatch {
  route: EdgeRoute;
  params: Readonly<Record<string, string | undefined>>;
}

const NO_QUERY = {};

/**
 * Finds the route of a request by Fastify's rules: static segments win over parameters, and parameters over wildcards.
 */
export class EdgeRouter {
  readonly #routes = findMyWay({ ...ROUTER_OPTIONS, querystringParser: () => NO_QUERY });

  add(methods: readonly string[], route: EdgeRoute): void {
    this.#routes.on([...methods] as HTTPMethod[], route.pattern, unused, route);
  }

  /** Returns undefined for unknown paths and malformed escapes. `url` is a request target in origin form. */
  find(method: string, url: string): EdgeMatch | undefined {
    const found = this.#routes.find(method as HTTPMethod, url);
    return found ? { route: found.store as EdgeRoute, params: found.params } : undefined;
  }
}

function unused(): never {
  throw new Error('Requests are served by their route, not by the router.');
}

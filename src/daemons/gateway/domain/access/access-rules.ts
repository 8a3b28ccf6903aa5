import findMyWay, { type HTTPMethod } from 'find-my-way';
import { type AccessRule, ENDPOINT_ACCESS, undeclaredAccess } from '../../../../contracts/index.ts';
import { ROUTER_OPTIONS } from '../../../../http/index.ts';
import { PLUGIN_ROUTES_PREFIX } from '../../../plugin-routes/route-table.ts';

/** Rule of a call, with the path parameters of its endpoint. */
export interface FoundRule {
  rule: AccessRule;
  params: Readonly<Record<string, string | undefined>>;
}

const NO_PARAMS = {};
const NO_QUERY = {};

/** Returns the rule of a route of the gateway by its pattern. */
export function nativeRule(method: string, pattern: string | undefined): AccessRule {
  const name = method === 'HEAD' ? 'GET' : method;
  return ENDPOINT_ACCESS[`${name} ${pattern}`] ?? undeclaredAccess(method, false);
}

/** Returns the rule of a call to the gateway. Path parameters are part of some scopes, as in `queue:{name}`. */
export function nativeCallRule(method: string, pattern: string | undefined, params: unknown): AccessRule {
  const rule = nativeRule(method, pattern);
  if (!rule.scope?.includes('{')) return rule;
  const values = params as Readonly<Record<string, string | undefined>>;
  return { ...rule, scope: rule.scope.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '') };
}

/** Finds the rules of proxied calls. Services find their routes in the same way. */
export class AccessRules {
  readonly #endpoints = findMyWay({ ...ROUTER_OPTIONS, querystringParser: () => NO_QUERY });

  constructor() {
    for (const [endpoint, rule] of Object.entries(ENDPOINT_ACCESS)) {
      const [method, path] = endpoint.split(' ');
      this.#endpoints.on(method as HTTPMethod, path!, unused, rule);
    }
  }

  /** Returns the rule of a call. `url` is the path and the query that the service receives. */
  find(method: string, url: string): FoundRule {
    const found = this.#endpoints.find((method === 'HEAD' ? 'GET' : method) as HTTPMethod, url);
    if (found) return { rule: found.store as AccessRule, params: found.params };
    return { rule: undeclaredAccess(method, url.startsWith(PLUGIN_ROUTES_PREFIX)), params: NO_PARAMS };
  }
}

function unused(): never {
  throw new Error('Rules are looked up, not called.');
}

import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** Whether a call of this route needs no token. `path` is raw, without the query. */
export type IsPublicRoute = (method: string, path: string) => boolean;

/**
 * Plugin routes with `security: none`. The REST API checks it again: while the two have loaded different versions of
 * a plugin, the stricter one applies. @spec docs/gateway.md "Routes without a token"
 */
export function createPublicRoutes(lookup: PluginRouteLookup): IsPublicRoute {
  return (method, path) => lookup.find(method, path)?.security?.includes('none') === true;
}

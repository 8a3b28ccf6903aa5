import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** Returns whether calls of this route need no token. `path` is not decoded and has no query. */
export type IsPublicRoute = (method: string, path: string) => boolean;

/**
 * Finds plugin routes with `security: none`. The REST service checks `security` again: after a reload, the two services
 * may have different versions of the plugin, and the stricter version applies. @spec
 * docs/gateway.md "Routes without a token"
 */
export function createPublicRoutes(lookup: PluginRouteLookup): IsPublicRoute {
  return (method, path) => lookup.find(method, path)?.security?.includes('none') === true;
}

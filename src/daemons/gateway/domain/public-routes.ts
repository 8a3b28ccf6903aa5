import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** Returns whether calls of a route need no token. `path` is percent-encoded and has no query string. */
export type IsPublicRoute = (method: string, path: string) => boolean;

/**
 * Finds plugin routes with `security: none`. The REST service checks `security` again, because its plugin version can
 * differ from the gateway's after a reload. The stricter version applies. @spec
 * docs/gateway.md "Routes without a token"
 */
export function createPublicRoutes(lookup: PluginRouteLookup): IsPublicRoute {
  return (method, path) => lookup.find(method, path)?.security?.includes('none') === true;
}

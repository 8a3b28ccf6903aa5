import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** Whether a call of this route needs no token. `path` is raw, without its query. */
export type IsPublicRoute = (method: string, path: string) => boolean;

/**
 * Plugin routes that list `none`. REST checks `security` again by itself: should the two have read different versions of
 * a plugin for a moment, the stricter one counts.
 * @spec docs/gateway.md "Routes without a token"
 */
export function createPublicRoutes(lookup: PluginRouteLookup): IsPublicRoute {
  return (method, path) => lookup.find(method, path)?.security?.includes('none') === true;
}

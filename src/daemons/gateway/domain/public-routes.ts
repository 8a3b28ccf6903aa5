import {
  createPluginRouteTable,
  PLUGIN_ROUTES_PREFIX,
  type RoutedPlugin,
} from '../../plugin-routes/route-table.ts';

/** The plugins as they are loaded now, and word of when that changes. */
export interface LoadedPlugins {
  readonly registry: { readonly plugins: Iterable<RoutedPlugin> };
  onReload(listener: (registry: LoadedPlugins['registry']) => void): unknown;
}

/** Whether whoever calls this needs no token. `path` is raw, without its query. */
export type IsPublicRoute = (method: string, path: string) => boolean;

/**
 * Plugin routes that list `none`, by the very table that the REST API serves them from. REST looks again by itself:
 * should the two have read different versions of a plugin for a moment, the stricter one counts.
 * @spec docs/decisions.md "Public plugin routes"
 */
export function createPublicRoutes(plugins: LoadedPlugins): IsPublicRoute {
  let table = createPluginRouteTable([...plugins.registry.plugins]);
  plugins.onReload((registry) => {
    table = createPluginRouteTable([...registry.plugins]);
  });
  return (method, path) => {
    if (!path.startsWith(PLUGIN_ROUTES_PREFIX)) return false;
    const match = table.find(method === 'HEAD' ? 'GET' : method, path);
    return match.found && match.target.security?.includes('none') === true;
  };
}

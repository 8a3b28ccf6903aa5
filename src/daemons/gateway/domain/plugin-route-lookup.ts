import {
  createPluginRouteTable,
  PLUGIN_ROUTES_PREFIX,
  type PluginRoute,
  type RoutedPlugin,
} from '../../plugin-routes/route-table.ts';

export interface LoadedPlugins {
  readonly registry: { readonly plugins: Iterable<RoutedPlugin> };
  onReload(listener: (registry: LoadedPlugins['registry']) => void): unknown;
}

/** Finds plugin routes with the same route table as the REST API. */
export interface PluginRouteLookup {
  /** Finds the route of a call. `path` is percent-encoded and can contain the query string. */
  find(method: string, path: string): PluginRoute | undefined;
}

export function createPluginRouteLookup(plugins: LoadedPlugins): PluginRouteLookup {
  let table = createPluginRouteTable([...plugins.registry.plugins]);
  plugins.onReload((registry) => {
    table = createPluginRouteTable([...registry.plugins]);
  });
  return {
    find(method, path) {
      if (!path.startsWith(PLUGIN_ROUTES_PREFIX)) return undefined;
      const match = table.find(method === 'HEAD' ? 'GET' : method, path.split('?', 1)[0]!);
      return match.found ? match.target : undefined;
    },
  };
}

import {
  createPluginRouteTable,
  PLUGIN_ROUTES_PREFIX,
  type PluginRoute,
  type RoutedPlugin,
} from '../../plugin-routes/route-table.ts';

/** The plugins as they are loaded now, and word of when that changes. */
export interface LoadedPlugins {
  readonly registry: { readonly plugins: Iterable<RoutedPlugin> };
  onReload(listener: (registry: LoadedPlugins['registry']) => void): unknown;
}

/** Finds plugin routes by the table that the REST API serves them from. */
export interface PluginRouteLookup {
  /** `path` is raw, with or without its query. */
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

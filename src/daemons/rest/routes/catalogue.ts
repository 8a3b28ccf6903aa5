import { listRoutes, type RouteItem } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { isVisible } from '../../../http/openapi.ts';
import { version } from '../../../kit/files/paths.ts';
import { PLUGIN_ROUTES_PREFIX, type PluginRouteTable } from '../../plugin-routes/route-table.ts';
import { pluginOpenApi } from '../domain/plugin-openapi.ts';
import type { RestServices } from '../services.ts';

/**
 * Registers the endpoints that list all routes and describe the routes of plugins. @spec Health, metrics, specification
 */
export function catalogueRoutes(http: Http, { pluginRoutes }: Pick<RestServices, 'pluginRoutes'>): void {
  mount(http, listRoutes, { auth: 'caller' }, () => ({
    items: [...platformRoutes(http), ...pluginItems(pluginRoutes.table.routes)].sort(byPath),
  }));
  http.get('/openapi-plugins.json', () =>
    pluginOpenApi(pluginRoutes.table.routes, version, (plugin) => pluginRoutes.schemasOf(plugin)),
  );
}

function platformRoutes({ kit }: Http): RouteItem[] {
  return kit.routes
    .filter(({ path }) => path !== `${PLUGIN_ROUTES_PREFIX}*`)
    .map(({ method, path }) => {
      const endpoint = kit.endpoints.find((item) => item.method === method && item.path === path)?.endpoint;
      return {
        method,
        path,
        tagged: (endpoint?.tags?.length ?? 0) > 0,
        visible: isVisible(endpoint),
        pluginId: null,
      };
    });
}

/** Returns one list item for each path of each plugin route. Only the first path is visible in the API description. */
function pluginItems(routes: PluginRouteTable['routes']): RouteItem[] {
  return routes.flatMap(({ plugin, declaration, paths }) =>
    paths.map((path, index) => ({
      method: declaration.method,
      path,
      tagged: true,
      visible: index === 0,
      pluginId: plugin.id,
    })),
  );
}

function byPath(a: RouteItem, b: RouteItem): number {
  const [left, right] = [`${a.path} ${a.method}`, `${b.path} ${b.method}`];
  return left < right ? -1 : left > right ? 1 : 0;
}

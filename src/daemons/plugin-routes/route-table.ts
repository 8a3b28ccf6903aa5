import { type ManifestV3, type RouteDecl, routeSecurity, type Security } from '../../contracts/index.ts';
import { createPathMatcher, type PathMatch } from './path-matcher.ts';

/** The fields of a plugin that its routes need. */
export interface RoutedPlugin {
  id: string;
  version: string;
  /** Absolute path of the plugin's folder. */
  root: string;
  manifest: ManifestV3;
}

/** One plugin route with its manifest's defaults applied. @spec Plugin REST route declaration */
export interface PluginRoute {
  plugin: RoutedPlugin;
  declaration: RouteDecl;
  /** Served paths: `/api` + base path + path, and an alias that contains the plugin's id. */
  paths: string[];
  /** Authentication methods, or undefined if neither the route nor the plugin declares `security`. */
  security: readonly Security[] | undefined;
  /** Time limit of the handler in ms. Undefined if the server's default applies. */
  timeoutMs: number | undefined;
}

/** The reason why a route is not served at its declared path. */
export interface RouteFault {
  pluginId: string;
  code: 'PLUGIN_CONFLICT';
  path: string;
  message: string;
}

export interface PluginRouteTable {
  routes: readonly PluginRoute[];
  faults: readonly RouteFault[];
  /** Finds the route of a call. `rawPath` is not decoded and has no query. */
  find(method: string, rawPath: string): PathMatch<PluginRoute>;
  /** Returns whether the path begins with a plugin's id or base path, even if no route matches. */
  belongsToPlugin(rawPath: string): boolean;
}

const PREFIX = '/api';
export const PLUGIN_ROUTES_PREFIX = '/api/v1/plugins/';

/**
 * Builds the table of all plugin routes. A base path belongs to the first plugin (by id) that claims the path, so that
 * plugins cannot impersonate each other. @spec Plugin routes; docs/plugins.md "Routes"
 */
export function createPluginRouteTable(plugins: readonly RoutedPlugin[]): PluginRouteTable {
  const matcher = createPathMatcher<PluginRoute>();
  const faults: RouteFault[] = [];
  const routes: PluginRoute[] = [];
  const withRoutes = [...plugins]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .filter(({ manifest }) => manifest.rest);
  const claims = createClaims(plugins.map(({ id }) => id));

  for (const plugin of withRoutes) {
    const rest = plugin.manifest.rest!;
    const rival = claims.claim(plugin.id, rest.basePath);
    if (rival) faults.push(takenBasePath(plugin.id, rest.basePath, rival));
    const bases = [...(rival ? [] : [rest.basePath]), aliasOf(plugin.id)].map((base) => PREFIX + base);
    for (const declaration of rest.routes) {
      const route: PluginRoute = {
        plugin,
        declaration,
        paths: [],
        security: routeSecurity(rest, declaration),
        timeoutMs: declaration.timeoutMs ?? rest.defaults.timeoutMs,
      };
      for (const base of bases) {
        const path = joinPath(base, declaration.path);
        // `add` returns false only if the base path equals the alias. The registry rejects manifests with duplicate
        // routes.
        if (matcher.add(declaration.method, path, route)) route.paths.push(path);
        // The path of the route "/" also matches with a trailing slash, but is listed once.
        if (declaration.path === '/') matcher.add(declaration.method, `${base}/`, route);
      }
      routes.push(route);
    }
  }
  return {
    routes,
    faults,
    find: matcher.find,
    belongsToPlugin: (rawPath) => claims.has(rawPath.slice(PREFIX.length)),
  };
}

/** Returns the base path with the plugin's id, which works in addition to the declared base path. */
function aliasOf(pluginId: string): string {
  return `/v1/plugins/${encodeURIComponent(pluginId)}`;
}

function joinPath(base: string, path: string): string {
  return path === '/' ? base : base + path;
}

/** Tracks the owner of each base path. */
function createClaims(pluginIds: readonly string[]) {
  const taken = new Map(pluginIds.map((id) => [canonical(aliasOf(id)), id]));
  return {
    /**
     * Claims a base path for a plugin, unless another plugin owns an overlapping path. In that case, returns the id of
     * the other plugin.
     */
    claim(pluginId: string, basePath: string): string | undefined {
      const wanted = canonical(basePath);
      for (const [path, owner] of taken) {
        if (owner !== pluginId && (wanted === path || isBelow(wanted, path) || isBelow(path, wanted)))
          return owner;
      }
      taken.set(wanted, pluginId);
      return undefined;
    },
    /** Returns whether a plugin owns the path or one of its parent paths. */
    has(path: string): boolean {
      const wanted = canonical(path);
      return [...taken.keys()].some((base) => wanted === base || isBelow(wanted, base));
    },
  };
}

const isBelow = (path: string, above: string): boolean => path.startsWith(`${above}/`);

/** Returns the same text for paths that differ only in their percent-encoding. */
function canonical(path: string): string {
  return path
    .split('/')
    .map((segment) => {
      try {
        return encodeURIComponent(decodeURIComponent(segment));
      } catch {
        return segment;
      }
    })
    .join('/');
}

function takenBasePath(pluginId: string, basePath: string, rival: string): RouteFault {
  return {
    pluginId,
    code: 'PLUGIN_CONFLICT',
    path: 'rest.basePath',
    message: `${basePath} belongs to the plugin ${rival}; the routes of ${pluginId} are served only under ${PREFIX}${aliasOf(pluginId)}. Change rest.basePath to end with the plugin's own name.`,
  };
}

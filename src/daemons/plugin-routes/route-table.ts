import { type ManifestV3, type RouteDecl, routeSecurity, type Security } from '../../contracts/index.ts';
import { createPathMatcher, type PathMatch } from './path-matcher.ts';

/** What routes need to know of a plugin. */
export interface RoutedPlugin {
  id: string;
  version: string;
  /** Its folder. */
  root: string;
  manifest: ManifestV3;
}

/** One route of one plugin, with its manifest's defaults filled in. @spec Plugin REST route declaration */
export interface PluginRoute {
  plugin: RoutedPlugin;
  declaration: RouteDecl;
  /** As served: `/api` + base path + path, or the alias under the plugin's id. */
  paths: string[];
  /** Undefined where neither route nor plugin says anything. */
  security: readonly Security[] | undefined;
  /** Undefined: the server's default. */
  timeoutMs: number | undefined;
}

/** Why a route is not served where its manifest wants it. */
export interface RouteFault {
  pluginId: string;
  code: 'PLUGIN_CONFLICT';
  /** Where in the manifest. */
  path: string;
  message: string;
}

export interface PluginRouteTable {
  routes: readonly PluginRoute[];
  faults: readonly RouteFault[];
  /** `rawPath` without query, not decoded. */
  find(method: string, rawPath: string): PathMatch<PluginRoute>;
  /** Whether the path is a plugin's own, by its id or its base path, with a route there or not. */
  belongsToPlugin(rawPath: string): boolean;
}

const PREFIX = '/api';
export const PLUGIN_ROUTES_PREFIX = '/api/v1/plugins/';

/**
 * Where each plugin's routes are. The path of a plugin's id is its own and cannot be taken; a base path
 * belongs to the first plugin (by id) that claims it, so that no plugin can stand in for another.
 * @spec Plugin routes; docs/plugins.md "Routes"
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
        // A base path that is the alias gives one path twice; the registry refuses manifests with equal routes.
        if (matcher.add(declaration.method, path, route)) route.paths.push(path);
        // Joined to the letter, the path "/" ends with a slash: found there too, and listed once.
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

/** Where a plugin's routes are reached by its id, whatever its base path. */
function aliasOf(pluginId: string): string {
  return `/v1/plugins/${encodeURIComponent(pluginId)}`;
}

function joinPath(base: string, path: string): string {
  return path === '/' ? base : base + path;
}

/** Who owns which part of the path space. */
function createClaims(pluginIds: readonly string[]) {
  const taken = new Map(pluginIds.map((id) => [canonical(aliasOf(id)), id]));
  return {
    /** The plugin that has this path, a part of it, or something below it already; undefined: it is ours now. */
    claim(pluginId: string, basePath: string): string | undefined {
      const wanted = canonical(basePath);
      for (const [path, owner] of taken) {
        if (owner !== pluginId && (wanted === path || isBelow(wanted, path) || isBelow(path, wanted)))
          return owner;
      }
      taken.set(wanted, pluginId);
      return undefined;
    },
    /** Whether a path is one of those that are taken, or below one. */
    has(path: string): boolean {
      const wanted = canonical(path);
      return [...taken.keys()].some((base) => wanted === base || isBelow(wanted, base));
    },
  };
}

const isBelow = (path: string, above: string): boolean => path.startsWith(`${above}/`);

/** One spelling for one path: escapes that mean the same are the same. */
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
    message: `${basePath} belongs to the plugin ${rival}; the routes of ${pluginId} are served under ${PREFIX}${aliasOf(pluginId)} alone. Change rest.basePath to end with the plugin's own name.`,
  };
}

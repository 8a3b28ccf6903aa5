import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** Added to a route's timeout, which starts only when a plugin process is available. */
const MARGIN_MS = 30_000;

/** Returns the response timeout for a method and an undecoded path, in ms. */
export type TimeoutFor = (method: string, path: string) => number;

/**
 * Creates the timeout lookup: the gateway's timeout, or that of the plugin route if it is longer.
 * @spec Limits: Route timeout
 */
export function createRouteTimeouts(
  lookup: PluginRouteLookup,
  { upstreamTimeoutMs, routeTimeoutMs }: { upstreamTimeoutMs: number; routeTimeoutMs: number },
): TimeoutFor {
  return (method, path) => {
    const route = lookup.find(method, path);
    if (!route) return upstreamTimeoutMs;
    return Math.max(upstreamTimeoutMs, (route.timeoutMs ?? routeTimeoutMs) + MARGIN_MS);
  };
}

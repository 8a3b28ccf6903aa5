import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** Time added to a route's timeout, in ms. The timeout starts only when a plugin process is available. */
const MARGIN_MS = 30_000;

/** Returns the response timeout in ms for a method and a percent-encoded path. */
export type TimeoutFor = (method: string, path: string) => number;

/**
 * Creates the lookup of response timeouts. The timeout of a plugin route, plus a margin, applies if this time is longer
 * than the gateway's timeout. @spec Limits: Route timeout
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

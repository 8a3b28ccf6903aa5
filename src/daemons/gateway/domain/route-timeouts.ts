import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** A route's time begins once its plugin's process runs: starting one, or waiting for one, comes on top. */
const MARGIN_MS = 30_000;

/** How long a call of this method and raw path may take to be answered, in ms. */
export type TimeoutFor = (method: string, path: string) => number;

/**
 * The gateway's limit, or that of a plugin route that declares more. Other routes keep the gateway's limit.
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

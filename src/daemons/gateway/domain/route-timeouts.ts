import type { PluginRouteLookup } from './plugin-route-lookup.ts';

/** A route's timeout starts when its plugin's process runs; this covers starting one or waiting for one. */
const MARGIN_MS = 30_000;

/** Response timeout for a method and raw path, in ms. */
export type TimeoutFor = (method: string, path: string) => number;

/** The gateway's timeout, or a plugin route's if that is longer. @spec Limits: Route timeout */
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

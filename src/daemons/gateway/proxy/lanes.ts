import type { Upstream } from './upstreams.ts';

/** A prefix of an upstream. */
export interface Lane {
  upstream: Upstream;
  /** The pattern of the paths below it. */
  route: string;
}

/** What follows a prefix as far as it is plain: a name that a router reads as it stands. */
const PLAIN_NAME = /^[\w-]+(?=[/?]|$)/;

/**
 * Tells whose a path is without asking the router, where that is beyond doubt: below a prefix, where no other route or
 * prefix goes on with the same name. Undefined: the router decides. `patterns`: all routes of the gateway.
 */
export function createLanes(
  upstreams: readonly Upstream[],
  patterns: readonly string[],
): (url: string) => Lane | undefined {
  const prefixes = upstreams.flatMap((upstream) =>
    upstream.prefixes.map((prefix) => ({ upstream, start: `${prefix}/`, route: `${prefix}/*` })),
  );
  const own = patterns.filter((pattern) => !prefixes.some(({ route }) => route === pattern));
  const taken = [...own, ...prefixes.map(({ start }) => start)];
  const lanes = prefixes
    .map((prefix) => ({ ...prefix, others: namesBelow(prefix.start, taken) }))
    .sort((a, b) => b.start.length - a.start.length);
  return (url) => {
    for (const lane of lanes) {
      if (!url.startsWith(lane.start)) continue;
      const name = PLAIN_NAME.exec(url.slice(lane.start.length))?.[0];
      return name === undefined || lane.others === 'any' || lane.others.has(name) ? undefined : lane;
    }
    return undefined;
  };
}

/** How patterns below `start` go on: their next names, or any where one goes on with a parameter. */
function namesBelow(start: string, patterns: readonly string[]): ReadonlySet<string> | 'any' {
  const below = patterns.filter((pattern) => pattern.startsWith(start) && pattern !== start);
  const names = below.map((pattern) => pattern.slice(start.length).split('/')[0]!);
  return names.some((name) => /[:*(]/.test(name)) ? 'any' : new Set(names);
}

import type { PlatformConfig } from '../../../contracts/index.ts';
import type { Peers } from '../../peers.ts';

export type UpstreamName = 'rest' | 'workflow';

/** A service behind the gateway. */
export interface Upstream {
  name: UpstreamName;
  /** Paths at or below these are its own; the longest match wins. */
  prefixes: readonly string[];
  websocket: boolean;
  /** Where it is now: `http://127.0.0.1:5050`. Throws UPSTREAM_UNAVAILABLE while nobody knows. */
  origin(): string;
  /** Goes before each path; '' unless the configured URL has a path. */
  basePath: string;
}

const NAMES: readonly UpstreamName[] = ['rest', 'workflow'];

export function createUpstreams(config: PlatformConfig['gateway']['upstreams'], peers: Peers): Upstream[] {
  return NAMES.map((name) => {
    const { url, prefix, websocket } = config[name];
    const fixed = url ? new URL(url) : null;
    const prefixes = [prefix].flat().map((path) => path.replace(/\/+$/, ''));
    const basePath = fixed ? fixed.pathname.replace(/\/+$/, '') : '';
    return { name, prefixes, websocket, basePath, origin: () => fixed?.origin ?? peers.urlOf(name) };
  });
}

/** Whose path it is: the longest prefix wins, as in the router; undefined: nobody's. */
export function upstreamFor(
  upstreams: readonly Upstream[],
  path: string,
): { upstream: Upstream; prefix: string } | undefined {
  const plain = decoded(path);
  const matches = upstreams.flatMap((upstream) =>
    upstream.prefixes
      .filter((prefix) => plain === prefix || plain.startsWith(`${prefix}/`))
      .map((prefix) => ({ upstream, prefix })),
  );
  return matches.sort((a, b) => b.prefix.length - a.prefix.length)[0];
}

/** As the router reads it: escapes resolved, but for an escaped slash. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path.replace(/%2f/gi, '%252F'));
  } catch {
    return path;
  }
}

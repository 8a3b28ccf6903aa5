import type { PlatformConfig } from '../../../contracts/index.ts';
import type { Peers } from '../../peers.ts';

export type UpstreamName = 'rest' | 'workflow';

export interface Upstream {
  name: UpstreamName;
  /** Path prefixes that the upstream serves. If several upstreams match, the longest prefix wins. */
  prefixes: readonly string[];
  websocket: boolean;
  /**
   * Returns the current origin, such as `http://127.0.0.1:5050`. Throws UPSTREAM_UNAVAILABLE until the service has
   * registered.
   */
  origin(): string;
  /** Path of the configured URL, which is prepended to each request path; empty if there is none. */
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

/** Finds the upstream of a path by the longest prefix, as the router does. */
export function upstreamFor(
  upstreams: readonly Upstream[],
  path: string,
): { upstream: Upstream; prefix: string } | undefined {
  const decodedPath = decoded(path);
  const matches = upstreams.flatMap((upstream) =>
    upstream.prefixes
      .filter((prefix) => decodedPath === prefix || decodedPath.startsWith(`${prefix}/`))
      .map((prefix) => ({ upstream, prefix })),
  );
  return matches.sort((a, b) => b.prefix.length - a.prefix.length)[0];
}

/** Decodes a path as the router does: escaped slashes stay escaped. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path.replace(/%2f/gi, '%252F'));
  } catch {
    return path;
  }
}

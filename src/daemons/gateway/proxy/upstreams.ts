import type { PlatformConfig, ServiceName } from '../../../contracts/index.ts';
import type { Peers } from '../../peers.ts';

export type UpstreamName = 'rest' | 'workflow';

export interface Upstream {
  name: UpstreamName;
  /** Path prefixes that the upstream serves. If prefixes of several upstreams match, the longest prefix decides. */
  prefixes: readonly string[];
  websocket: boolean;
  /** Whether answers get `Content-Security-Policy: sandbox`. */
  sandbox: boolean;
  /**
   * Returns the origin of the configured URL, or else of the address from the supervisor, such as
   * `http://127.0.0.1:5050`. Throws UPSTREAM_UNAVAILABLE if neither is set.
   */
  origin(): string;
  /** Path of the configured URL, prepended to each request path. Empty if no URL is configured. */
  basePath: string;
}

const NAMES: readonly UpstreamName[] = ['rest', 'workflow'];

export function createUpstreams(config: PlatformConfig['gateway']['upstreams'], peers: Peers): Upstream[] {
  return NAMES.map((name) => {
    const { url, prefix, websocket, sandbox } = config[name];
    const fixed = url ? new URL(url) : null;
    const prefixes = [prefix].flat().map((path) => path.replace(/\/+$/, ''));
    const basePath = fixed ? fixed.pathname.replace(/\/+$/, '') : '';
    return { name, prefixes, websocket, sandbox, basePath, origin: () => fixed?.origin ?? peers.urlOf(name) };
  });
}

/** Returns the upstreams on this node whose address is not known yet. Calls to them would fail. */
export function startingUpstreams({ config, peers, elsewhere }: UpstreamHosts): readonly UpstreamName[] {
  // Without a supervisor, every service may be on another node.
  if (!elsewhere) return [];
  const known = peers.known();
  return NAMES.filter(
    (name) => !config.gateway.upstreams[name].url && !elsewhere.includes(name) && !known[name],
  );
}

interface UpstreamHosts {
  config: PlatformConfig;
  peers: Peers;
  /** Services that other nodes run. */
  elsewhere?: readonly ServiceName[] | undefined;
}

/** Returns the upstream with the longest matching prefix. `EdgeRouter` uses the same rule. */
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

/** Decodes percent-encoded characters except slashes, as `EdgeRouter` does. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path.replace(/%2f/gi, '%252F'));
  } catch {
    return path;
  }
}

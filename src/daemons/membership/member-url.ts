import { hostname } from 'node:os';
import type { ServiceName } from '../../contracts/index.ts';
import { isLoopbackHost } from '../../kit/config/loopback.ts';
import type { Environment } from '../../kit/config/secret-ref.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { MemberAddress } from '../listen-address.ts';

/** Addresses that stand for all interfaces. Other machines cannot connect to these addresses. */
const WILDCARDS = new Set(['0.0.0.0', '::']);

/**
 * Returns the URL at which other members reach this process: `--advertise`, or `SVC_ADVERTISE_URL` for the gateway, or
 * else the bound port on the host of `SVC_ADVERTISE_URL` or on the bound host. The name of the machine replaces an
 * address for all interfaces. Throws CONFIG_PARSE_ERROR.
 */
export function memberUrl(service: ServiceName, { address, advertise, env }: Advertised): string {
  if (advertise) return originOf(advertise, '--advertise').origin;
  const { host, port, sharesPort } = address.own;
  const node = env.SVC_ADVERTISE_URL && originOf(env.SVC_ADVERTISE_URL, 'SVC_ADVERTISE_URL');
  if (node && service === 'gateway' && !sharesPort) return node.origin;
  // Another machine cannot call a process that listens only on the loopback address.
  if (node && !isLoopbackHost(host)) return originWith(node.hostname, port);
  return originWith(WILDCARDS.has(host) ? hostname() : host, port);
}

export interface Advertised {
  address: { own: MemberAddress };
  /** URL of this process that other nodes use, from `svc start --advertise`. */
  advertise?: string | undefined;
  env: Environment;
}

/**
 * Returns whether this process may call the member at `url`. An address on loopback belongs to the machine of that
 * member, so only processes that advertise loopback themselves use it: all nodes are then on one machine.
 */
export function isReachable(url: string, { advertise, env }: Pick<Advertised, 'advertise' | 'env'>): boolean {
  const own = advertise ?? env.SVC_ADVERTISE_URL;
  return !isLoopbackUrl(url) || (own !== undefined && isLoopbackUrl(own));
}

function isLoopbackUrl(url: string): boolean {
  const { hostname: host } = URL.parse(url) ?? {};
  return host !== undefined && isLoopbackHost(host);
}

function originWith(host: string, port: number): string {
  const bracketed = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  return new URL(`http://${bracketed}:${port}`).origin;
}

function originOf(advertised: string, source: string): URL {
  const url = URL.parse(advertised);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new PlatformError(
    'CONFIG_PARSE_ERROR',
    `${source} is "${advertised}", but must be a URL such as http://10.0.0.5:4000.`,
  );
}

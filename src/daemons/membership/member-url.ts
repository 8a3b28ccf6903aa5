import { hostname } from 'node:os';
import type { Environment } from '../../kit/config/secret-ref.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { LOOPBACK, type MemberAddress } from '../listen-address.ts';

/** Addresses that stand for all interfaces. Other machines cannot connect to these addresses. */
const WILDCARDS = new Set(['0.0.0.0', '::']);

/**
 * Returns the URL at which other members reach this process. `SVC_ADVERTISE_URL` takes precedence over the bound
 * address. Throws CONFIG_PARSE_ERROR if `SVC_ADVERTISE_URL` is invalid.
 */
export function memberUrl({ host, port, sharesPort }: MemberAddress, env: Environment): string {
  const advertised = env.SVC_ADVERTISE_URL && originOf(env.SVC_ADVERTISE_URL);
  if (advertised && !sharesPort) return advertised.origin;
  // Another machine cannot call a process that listens only on the loopback address.
  if (advertised && host !== LOOPBACK) return originWith(advertised.hostname, port);
  return originWith(WILDCARDS.has(host) ? hostname() : host, port);
}

function originWith(host: string, port: number): string {
  const bracketed = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  return new URL(`http://${bracketed}:${port}`).origin;
}

function originOf(advertised: string): URL {
  const url = URL.parse(advertised);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new PlatformError(
    'CONFIG_PARSE_ERROR',
    `SVC_ADVERTISE_URL is "${advertised}", but must be a URL such as http://10.0.0.5:4000.`,
  );
}

import { hostname } from 'node:os';
import type { Environment } from '../../kit/config/secret-ref.ts';
import { PlatformError } from '../../kit/errors/errors.ts';

/** Addresses that stand for all interfaces. Other machines cannot connect to these addresses. */
const WILDCARDS = new Set(['0.0.0.0', '[::]']);

/**
 * Returns the URL at which other nodes reach this process: `SVC_ADVERTISE_URL`, or else the bound address. The name of
 * the machine replaces an address for all interfaces. Throws CONFIG_PARSE_ERROR.
 */
export function memberUrl(bound: string, env: Environment): string {
  const advertised = env.SVC_ADVERTISE_URL;
  if (advertised) return originOf(advertised);
  const url = new URL(bound);
  if (WILDCARDS.has(url.hostname)) url.hostname = hostname();
  return url.origin;
}

function originOf(advertised: string): string {
  const url = URL.parse(advertised);
  if (url && /^https?:$/.test(url.protocol)) return url.origin;
  throw new PlatformError(
    'CONFIG_PARSE_ERROR',
    `SVC_ADVERTISE_URL is "${advertised}", but must be a URL such as http://10.0.0.5:4000.`,
  );
}

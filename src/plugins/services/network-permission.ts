import { PlatformError } from '../../kit/errors/errors.ts';
import { literalAddress } from './addresses.ts';

export interface HostGrant {
  /**
   * Whether the host is allowed to have a private address. The manifest must list the address itself, or the operator
   * must allow the host name.
   */
  mayBePrivate: boolean;
}

/**
 * Throws PERMISSION_DENIED if `permissions.network` does not list the host of a URL. An entry without a port allows all
 * ports. Only names in `privateHosts` are allowed to resolve to private addresses.
 */
export function requireHost(
  url: URL,
  network: readonly string[],
  privateHosts: readonly string[] = [],
): HostGrant {
  const { host, port } = targetOf(url);
  let isAllowed = false;
  for (const entry of network) {
    const match = matchEntry(entry, host, port);
    const isListed = privateHosts.some((name) => matchEntry(name, host, port) === 'exact');
    if (match === 'exact' && (literalAddress(host) !== null || isListed)) return { mayBePrivate: true };
    isAllowed ||= match !== null;
  }
  if (isAllowed) return { mayBePrivate: false };
  throw new PlatformError(
    'PERMISSION_DENIED',
    `The plugin may not call ${host}: its manifest must list "${host}" under permissions.network.`,
    { details: { permission: 'permissions.network', host, port: Number(port) } },
  );
}

/** Returns the first entry of `permissions.network` that lists the host of a URL. */
export function grantingEntry(url: URL, network: readonly string[]): string | undefined {
  const { host, port } = targetOf(url);
  return network.find((entry) => matchEntry(entry, host, port) !== null);
}

function targetOf(url: URL): { host: string; port: string } {
  return {
    host: canonicalHost(url.hostname),
    port: url.port || (url.protocol === 'https:' ? '443' : '80'),
  };
}

/** Returns the host name in lower case, without the trailing dot of a fully qualified name. */
function canonicalHost(hostname: string): string {
  return hostname.toLowerCase().replace(/\.$/, '');
}

function matchEntry(entry: string, host: string, port: string): 'exact' | 'pattern' | null {
  if (entry === '*') return 'pattern';
  const isPattern = entry.startsWith('*.');
  const named = parseEntry(isPattern ? entry.slice(2) : entry);
  if (!named || (named.port !== null && named.port !== port)) return null;
  if (isPattern) return host.endsWith(`.${named.host}`) ? 'pattern' : null;
  return host === named.host ? 'exact' : null;
}

/**
 * Normalizes an entry of `permissions.network` to the form of a URL's host. For example, IPv6 addresses get brackets.
 */
function parseEntry(entry: string): { host: string; port: string | null } | null {
  const port = /:(\d{1,5})$/.exec(entry)?.[1] ?? null;
  const bare = port !== null && (entry.startsWith('[') || entry.indexOf(':') === entry.lastIndexOf(':'));
  const name = bare ? entry.slice(0, entry.lastIndexOf(':')) : entry;
  const bracketed = name.includes(':') && !name.startsWith('[') ? `[${name}]` : name;
  const text = `http://${bracketed}/`;
  if (!URL.canParse(text)) return null;
  return { host: canonicalHost(new URL(text).hostname), port: bare ? port : null };
}

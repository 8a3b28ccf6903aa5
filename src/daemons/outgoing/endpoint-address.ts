import { PlatformError } from '../../kit/errors/errors.ts';
import { literalAddress, type PrivateKind, privateKindOf } from '../../plugins/services/addresses.ts';
import { requireHost } from '../../plugins/services/network-permission.ts';

export interface AddressRules {
  allowPrivateAddresses: boolean;
  /** Hosts, or hosts with ports, for which no rule applies except the one of `isNeverAllowed`. */
  allow: readonly string[];
  /** Whether URLs must be https. */
  requireHttps: boolean;
}

/** Ports above 1023 of databases, caches and control planes, which speak no HTTP or need no password inside a network. */
const SERVICE_PORTS = new Set([
  1080, 1433, 1521, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3128, 3306, 3389, 4369, 5432, 5433, 5671, 5672,
  5900, 5984, 6379, 6380, 6443, 7001, 7077, 8086, 8500, 9042, 9092, 9200, 9300, 10250, 10255, 11211, 15672,
  26379, 27017, 27018, 27019, 50070,
]);

/** Rights of a URL: whether its host may have a private address. */
export interface AddressGrant {
  mayBePrivate: boolean;
}

/** Throws PERMISSION_DENIED if a message must not be sent to the URL. @spec docs/messages.md "Addresses" */
export function requireAllowedUrl(url: URL, rules: AddressRules): AddressGrant {
  const isListed =
    rules.allow.length > 0 && requireHost(url, ['*', ...rules.allow], rules.allow).mayBePrivate;
  if (!isListed) {
    if (rules.requireHttps && url.protocol !== 'https:') throw refused(url, 'it is not https', 'Use https');
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
    if (!isAllowedPort(port))
      throw refused(url, `port ${port} is not allowed`, 'Use port 80, 443 or another one');
  }
  const mayBePrivate = isListed || rules.allowPrivateAddresses;
  const address = literalAddress(url.hostname);
  if (address !== null) requireAllowedAddress(url.hostname, address, { mayBePrivate, isListed });
  return { mayBePrivate };
}

function isAllowedPort(port: number): boolean {
  return port === 80 || port === 443 || (port >= 1024 && !SERVICE_PORTS.has(port));
}

/**
 * Throws PERMISSION_DENIED for a refused address. The message does not contain the address of a name, because it would
 * tell callers about the internal network.
 */
export function requireAllowedAddress(
  host: string,
  address: string,
  { mayBePrivate, isListed = false }: AddressGrant & { isListed?: boolean },
): void {
  const kind = privateKindOf(address);
  if (kind === undefined || (mayBePrivate && !isNeverAllowed(kind, isListed))) return;
  throw denied(host, `it has a ${kind} address`, `An operator can list "${host}" under outgoing.allow`);
}

/** A name never leads to a cloud metadata service. `outgoing.allow` can list such an address itself. */
function isNeverAllowed(kind: PrivateKind, isListed: boolean): boolean {
  return (kind === 'link-local' || kind === 'metadata' || kind === 'multicast') && !isListed;
}

function refused(url: URL, why: string, remedy: string): PlatformError {
  return denied(
    url.hostname,
    why,
    `${remedy}, or have an operator list "${url.hostname}" under outgoing.allow`,
  );
}

function denied(host: string, why: string, remedy: string): PlatformError {
  return new PlatformError('PERMISSION_DENIED', `Messages to ${host} are refused: ${why}. ${remedy}.`, {
    details: { host, permission: 'outgoing.allow' },
  });
}

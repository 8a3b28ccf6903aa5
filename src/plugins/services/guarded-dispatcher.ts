import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Agent } from 'undici';
import { PlatformError } from '../../kit/errors/errors.ts';
import { literalAddress, privateKindOf } from './addresses.ts';
import type { Resolve } from './resolve.ts';

export interface Dispatchers {
  /** Agent for hosts that match host names or patterns of the manifest. Rejects connections to private addresses. */
  publicOnly: Agent;
  /** Agent for hosts that are allowed to have private addresses. Requests to other hosts never use its connections. */
  anywhere: Agent;
}

/** Throws PERMISSION_DENIED if the address is private. */
export function refusePrivateAddress(host: string, address: string): void {
  refuseLocalServices(host, address);
  const kind = privateKindOf(address);
  if (!kind) return;
  throw denied(
    host,
    address,
    kind,
    literalAddress(host) !== null
      ? `List "${host}" itself under permissions.network to allow it.`
      : `Call and list the address itself, or have the operator list "${host}" under execution.privateHosts.`,
  );
}

/** Throws PERMISSION_DENIED for link-local addresses and for cloud metadata services, which no permission allows. */
export function refuseLocalServices(host: string, address: string): void {
  const kind = privateKindOf(address);
  if (kind !== 'link-local' && kind !== 'metadata') return;
  throw denied(host, address, kind, 'No permission allows that.');
}

function denied(host: string, address: string, kind: string, remedy: string): PlatformError {
  return new PlatformError(
    'PERMISSION_DENIED',
    `The plugin may not call ${host}: ${host === address ? 'it is' : `it resolves to ${address},`} a ${kind} address. ${remedy}`,
    { details: { permission: 'permissions.network', host, address, kind } },
  );
}

const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Creates the undici agents for requests of plugins. To prevent DNS rebinding, each connection checks the address from
 * its own DNS lookup.
 */
export async function createDispatchers(resolve: Resolve = dnsLookup): Promise<Dispatchers> {
  const { Agent } = await import('undici');
  const agent = (lookup: LookupFunction) =>
    new Agent({
      connect: { lookup, timeout: CONNECT_MS },
      keepAliveTimeout: KEEP_ALIVE_MS,
      connections: 16,
      maxHeaderSize: 64 * 1024,
    });
  return {
    publicOnly: agent(checkedLookup(resolve, refusePrivateAddress)),
    anywhere: agent(checkedLookup(resolve, refuseLocalServices)),
  };
}

/** Returns a DNS lookup that fails if `check` rejects any of the resolved addresses. */
export function checkedLookup(
  resolve: Resolve,
  check: (host: string, address: string) => void,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { all: true, family: options.family }, (error, addresses) => {
      if (error) return callback(error, []);
      try {
        // undici chooses the address to connect to. A host name is therefore rejected if any of its addresses is
        // private.
        for (const { address } of addresses) check(hostname, address);
      } catch (refusal) {
        return callback(refusal as NodeJS.ErrnoException, []);
      }
      const [first] = addresses;
      if (!first) return callback(new Error(`${hostname} has no address`), []);
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

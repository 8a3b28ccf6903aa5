import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';

/** Where a request comes from, as far as that is known for sure. */
export interface ClientSide {
  ip: string;
  /** The name it was sent to. */
  host: string;
  proto: 'http' | 'https';
}

export type ClientSideOf = (request: IncomingMessage) => ClientSide;

/**
 * Reads it off requests that the framework does not see (upgrades), as the framework reads it off others: what
 * `X-Forwarded-*` say counts from trusted proxies alone, and of the address only as far as they vouch for it.
 */
export function createClientSide(trustedProxies: readonly string[]): ClientSideOf {
  const trusts = trustIn(trustedProxies);
  return (request) => {
    const { headers, socket } = request;
    const byProxy = trusts(socket.remoteAddress ?? '', 0);
    const told = (name: string): string | undefined => (byProxy ? lastOf(headers[name]) : undefined);
    return {
      ip: byProxy ? proxyAddr(request, trusts) : (socket.remoteAddress ?? ''),
      host: told('x-forwarded-host') ?? headers.host ?? '',
      proto: told('x-forwarded-proto') === 'https' ? 'https' : 'http',
    };
  };
}

/** The address alone, for who has no request: of the connection, and what `X-Forwarded-For` says. */
export function createClientAddress(
  trustedProxies: readonly string[],
): (remoteAddress: string, forwardedFor: string | undefined) => string {
  const trusts = trustIn(trustedProxies);
  return (remoteAddress, forwardedFor) =>
    forwardedFor !== undefined && trusts(remoteAddress, 0)
      ? proxyAddr(requestFrom(remoteAddress, forwardedFor), trusts)
      : remoteAddress;
}

function trustIn(proxies: readonly string[]): (address: string, distance: number) => boolean {
  return proxies.length > 0 ? proxyAddr.compile([...proxies]) : () => false;
}

/** As much of a request as its client's address is read off. */
function requestFrom(remoteAddress: string, forwardedFor: string): IncomingMessage {
  return { headers: { 'x-forwarded-for': forwardedFor }, socket: { remoteAddress } } as never;
}

/** The entry of the proxy that is next to us; those before it may be anybody's. */
function lastOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value.slice(value.lastIndexOf(',') + 1).trim() : undefined;
}

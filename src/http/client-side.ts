import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';

/** Verified origin of a request. */
export interface ClientSide {
  ip: string;
  /** The requested host name. */
  host: string;
  proto: 'http' | 'https';
}

export type ClientSideOf = (request: IncomingMessage) => ClientSide;

/**
 * Derives the client's address for requests that bypass Fastify (upgrades), by the same rules: `X-Forwarded-*` headers are
 * trusted only from configured proxies.
 */
export function createClientSide(trustedProxies: readonly string[]): ClientSideOf {
  const trusts = trustIn(trustedProxies);
  return (request) => {
    const { headers, socket } = request;
    const isProxied = trusts(socket.remoteAddress ?? '', 0);
    const forwarded = (name: string): string | undefined => (isProxied ? lastOf(headers[name]) : undefined);
    return {
      ip: isProxied ? proxyAddr(request, trusts) : (socket.remoteAddress ?? ''),
      host: forwarded('x-forwarded-host') ?? headers.host ?? '',
      proto: forwarded('x-forwarded-proto') === 'https' ? 'https' : 'http',
    };
  };
}

/** Resolves the client address from the remote address and `X-Forwarded-For`, without a request object. */
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

/** The minimal request that proxy-addr reads. */
function requestFrom(remoteAddress: string, forwardedFor: string): IncomingMessage {
  return { headers: { 'x-forwarded-for': forwardedFor }, socket: { remoteAddress } } as never;
}

/** The entry added by the nearest proxy. Earlier entries are untrusted. */
function lastOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value.slice(value.lastIndexOf(',') + 1).trim() : undefined;
}

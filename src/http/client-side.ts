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
 * Derives the client's address for requests that Fastify does not serve, by the same rules: `X-Forwarded-*` headers are
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

function trustIn(proxies: readonly string[]): (address: string, distance: number) => boolean {
  return proxies.length > 0 ? proxyAddr.compile([...proxies]) : () => false;
}

/** Returns the header entry that the nearest proxy added. Earlier entries are untrusted. */
function lastOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value.slice(value.lastIndexOf(',') + 1).trim() : undefined;
}

import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';

/** Client address, and the host and protocol that the client used, even behind a trusted proxy. */
export interface ClientSide {
  ip: string;
  host: string;
  proto: 'http' | 'https';
}

export type ClientSideOf = (request: IncomingMessage) => ClientSide;

/**
 * Returns a function that finds the `ClientSide` of requests that bypass Fastify. `X-Forwarded-*` headers are trusted
 * only from configured proxies, as with Fastify's `trustProxy`.
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

/** Returns the last list element of a header, which the nearest proxy appended. Clients can forge earlier elements. */
function lastOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value.slice(value.lastIndexOf(',') + 1).trim() : undefined;
}

import { connect } from 'node:net';

/** Time limit to connect. Machines of a cluster answer within milliseconds. */
const CONNECT_TIMEOUT_MS = 500;

/** Returns whether a program accepts TCP connections at the host and port of a URL. Sends no request. */
export function acceptsConnections(url: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    timeout: CONNECT_TIMEOUT_MS,
  });
  return new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('timeout', () => resolve(false));
    socket.once('error', () => resolve(false));
  }).finally(() => socket.destroy());
}

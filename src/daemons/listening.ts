import { createServer, isIPv6 } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Http, LISTEN_BACKLOG } from '../http/index.ts';
import { codeOf, messageOf, PlatformError } from '../kit/errors.ts';
import type { Listener } from './process-protocol.ts';

/** Resolves with the port that it got. Throws CONFLICT when it is taken. */
export async function listen(
  http: Http,
  address: { host: string; port: number; reusePort?: boolean; handle?: Listener | undefined },
  name: string,
): Promise<number> {
  const { host, port, reusePort, handle } = address;
  try {
    // A socket that is shared with nobody is asked for as it always was.
    const how = { ...(reusePort ? { reusePort } : {}), ...(handle ? { handle } : {}) };
    await http.listen({ host, port, backlog: LISTEN_BACKLOG, ...how });
  } catch (error) {
    throw cannotListen(error, address, name);
  }
  const bound = http.server.address();
  return typeof bound === 'object' && bound ? bound.port : port;
}

/** The server's own handle: its public ways to travel between processes would have the receiver take connections. */
export function listenerOf({ server }: Http): Listener | undefined {
  return (server as { _handle?: Listener })._handle;
}

function cannotListen(
  error: unknown,
  { host, port }: { host: string; port: number },
  name: string,
): PlatformError {
  const details = { service: name, host, port };
  if (codeOf(error) === 'EADDRINUSE') {
    return new PlatformError(
      'CONFLICT',
      `Port ${port} on ${host} is taken; free it or choose another with \`svc up --port ${name}=<port>\`.`,
      { details, cause: error },
    );
  }
  return new PlatformError(
    'INTERNAL_ERROR',
    `${name} cannot listen on ${host}:${port}: ${messageOf(error)}`,
    {
      details,
      cause: error,
    },
  );
}

/** How long processes of a predecessor that was killed may take to leave the port. */
const FREE_WITHIN_MS = 3000;
const FREE_POLL_MS = 50;

/**
 * A shared port is shared with whoever asks: a second platform on it would get half of our requests. So the first
 * process makes sure that nobody listens there. Throws CONFLICT.
 */
export async function requireFree(address: { host: string; port: number }, name: string): Promise<void> {
  if (address.port === 0) return;
  for (let waitedMs = 0; ; waitedMs += FREE_POLL_MS) {
    const error = await tryListen(address);
    if (!error) return;
    if (codeOf(error) !== 'EADDRINUSE' || waitedMs >= FREE_WITHIN_MS)
      throw cannotListen(error, address, name);
    await sleep(FREE_POLL_MS);
  }
}

function tryListen({ host, port }: { host: string; port: number }): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen({ host, port }, () => probe.close(() => resolve(undefined)));
  });
}

/** A host as it stands in a URL that this machine can call: any-address becomes loopback. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return isIPv6(host) ? `[${host}]` : host;
}

import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv6, type ListenOptions, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Http, LISTEN_BACKLOG } from '../http/index.ts';
import { codeOf, messageOf, PlatformError } from '../kit/errors/errors.ts';
import type { Listener } from './process-protocol.ts';

/** Resolves with the bound port. Throws CONFLICT if the port is in use. */
export async function listen(
  http: Http,
  address: { host: string; port: number; reusePort?: boolean; handle?: Listener | undefined },
  name: string,
): Promise<number> {
  const { host, port, reusePort, handle } = address;
  try {
    const how = { ...(reusePort ? { reusePort } : {}), ...(handle ? { handle } : {}) };
    await http.listen({ host, port, backlog: LISTEN_BACKLOG, ...how });
    if (host === 'localhost')
      await listenOnOtherLoopback(http, { backlog: LISTEN_BACKLOG, reusePort: reusePort === true });
  } catch (error) {
    throw cannotListen(error, address, name);
  }
  const bound = http.server.address();
  return typeof bound === 'object' && bound ? bound.port : port;
}

/** Opens a second listener on a free port, which no other process shares. Resolves with the port. */
export async function listenForMembers({ server }: Http, host: string): Promise<number> {
  const own = forwardingServer(server);
  own.listen({ host, port: 0, backlog: LISTEN_BACKLOG });
  await once(own, 'listening');
  server.once('close', () => own.close());
  return (own.address() as AddressInfo).port;
}

/** Creates a server whose connections are handled by `server`. */
function forwardingServer(server: Http['server']): Server {
  return createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
}

const LOOPBACK = ['127.0.0.1', '::1'];

/**
 * Opens a listener on the other loopback address, because Node binds only one address of `localhost`. Ignores failures,
 * because the machine might have only one loopback address.
 */
async function listenOnOtherLoopback({ server }: Http, options: ListenOptions): Promise<void> {
  const bound = server.address() as AddressInfo;
  const other = forwardingServer(server);
  const host = LOOPBACK.find((address) => address !== bound.address);
  other.on('error', () => {}).listen({ ...options, host, port: bound.port });
  await once(other, 'listening').then(
    () => server.once('close', () => other.close()),
    () => undefined,
  );
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
      `Port ${port} on ${host} is in use; free it, or choose another with \`svc up --port ${name}=<port>\`.`,
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

/** Maximum time to wait at startup until processes of the previous service have released the port. */
const FREE_WITHIN_MS = 3000;
const FREE_POLL_MS = 50;

/**
 * Throws CONFLICT if the port is in use. `reusePort` would share the port with any process. A second platform on the
 * port would then get half of the requests.
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

/** Returns the host for a URL that works on this machine. A wildcard address becomes loopback. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return isIPv6(host) ? `[${host}]` : host;
}

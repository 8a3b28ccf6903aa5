import type { Socket } from 'node:net';
import { LIMITS } from '../../contracts/index.ts';
import { drainLeftMs, REAP_MS } from '../drain.ts';
import type { Http } from '../server.ts';
import { openPlainConnection, type PlainConnection, type PlainConnectionOptions } from './connection.ts';

const LOOK_MS = 500;
/** A request that was sent in the last moment of the time that we promise is taken, as node:http does. */
const GRACE_MS = 1000;

/**
 * Offers POSTs below `prefix` in their plainest form to `take` without node:http, whose part is a third of what receiving a
 * short one costs (20 us instead of 32 for one with an HMAC). Whatever else comes is node:http's, with its connection.
 * Whoever takes a request does what the usual way does for it: ids, `kit.lastRequestAt`, `kit.accountAnswered`.
 */
export function takePlainRequests(
  http: Http,
  { prefix, take }: Pick<PlainConnectionOptions, 'prefix' | 'take'>,
): void {
  const { server, kit } = http;
  // node:http's own, which the server was made with.
  const serve = server.listeners('connection')[0] as (socket: Socket) => void;
  const connections = new Set<PlainConnection>();
  const options: PlainConnectionOptions = {
    prefix,
    take,
    serveOtherwise: (socket) => serve.call(server, socket),
    onGone: (connection) => void connections.delete(connection),
    isDraining: () => kit.draining,
    keepAliveMs: LIMITS.keepAliveMs + GRACE_MS,
  };
  server.off('connection', serve);
  server.on('connection', (socket: Socket) => connections.add(openPlainConnection(socket, options)));
  server.on('listening', () => {
    const timer = setInterval(() => {
      const now = performance.now();
      for (const connection of connections) connection.look(now);
    }, LOOK_MS);
    timer.unref();
    server.once('close', () => clearInterval(timer));
  });
  // After the wait for what is still on the wire: the server's own hook came first.
  http.addHook('preClose', async () => {
    if (!server.listening) return;
    const reap = setInterval(() => {
      for (const connection of connections) connection.endIdle();
    }, REAP_MS);
    const cut = setTimeout(() => {
      for (const connection of connections) connection.destroy();
    }, drainLeftMs(http));
    server.once('close', () => {
      clearInterval(reap);
      clearTimeout(cut);
    });
  });
}

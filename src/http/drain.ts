import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { STOP_DEADLINES } from '../kit/time/stop-deadlines.ts';
import type { Http } from './http-kit.ts';

/** Kernel backlog of the listener. With Node's 511, a burst of connections waits for a retransmit of one second. */
export const LISTEN_BACKLOG = 4096;

const POLL_MS = 10;
/** Polls without activity after which the backlog counts as empty. Polls, not time, because a busy loop reads late. */
const QUIET_POLLS = 4;
/** Max time to accept during a drain. libuv accepts one connection per turn, and turns are slow under load. */
const MAX_ACCEPTING_MS = 6000;
const REAP_MS = 25;
const DRAIN_MS = 8000;

const drainMsOf = ({ kit }: Http): number => kit.drainMs ?? DRAIN_MS;

/** Ms left for open requests. Event streams never end by themselves; clients reconnect. */
function drainLeftMs(http: Http): number {
  return Math.min(drainMsOf(http), http.kit.drainEndsAt - performance.now());
}

/**
 * Graceful shutdown: responses get `Connection: close` at once, but listener and idle connections stay open until the
 * backlog is empty, or requests just sent would be lost. Then connections close when idle, and all at the deadline.
 */
export function drainOnClose(http: Http): void {
  const { server } = http;
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    http.kit.connections++;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  http.addHook('preClose', async () => {
    http.kit.draining = true;
    if (!server.listening) return;
    http.kit.drainEndsAt = performance.now() + drainMsOf(http) + STOP_DEADLINES.httpCutMs;
    await untilBacklogEmpty(http);
    // Node closes connections that are idle at close; those that become idle later stay open until the keep-alive timeout.
    const reap = setInterval(() => closeIdle(server, open), REAP_MS);
    const cut = setTimeout(() => server.closeAllConnections(), drainLeftMs(http));
    server.once('close', () => {
      clearInterval(reap);
      clearTimeout(cut);
    });
  });
  http.addHook('onSend', (_request, reply, payload, done) => {
    if (http.kit.draining) reply.header('connection', 'close');
    done(null, payload);
  });
}

/** Node does not count a connection as idle before its first request. */
function closeIdle(server: Server, open: ReadonlySet<Socket>): void {
  server.closeIdleConnections();
  for (const socket of open) if (socket.bytesRead === 0) socket.destroySoon();
}

/** Resolves once the backlog is empty: no new requests, or more connections than it holds. */
async function untilBacklogEmpty(http: Http): Promise<void> {
  const { kit } = http;
  const lastOfBacklog = kit.connections + LISTEN_BACKLOG;
  const endsAt = Math.min(performance.now() + MAX_ACCEPTING_MS, kit.drainEndsAt);
  let quiet = 0;
  while (quiet < QUIET_POLLS && kit.connections < lastOfBacklog && performance.now() < endsAt) {
    const before = activity(http);
    await sleep(POLL_MS);
    quiet = activity(http) === before ? quiet + 1 : 0;
  }
}

/** Changes with each new connection and request; both terms only grow. */
function activity({ kit }: Http): number {
  return kit.connections + kit.lastRequestAt;
}

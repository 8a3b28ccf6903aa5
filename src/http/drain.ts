import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { STOP_DEADLINES } from '../kit/time/stop-deadlines.ts';
import type { Http } from './http-kit.ts';

/**
 * Maximum length of the kernel's accept queue. Node's default is 511. If the queue is full, clients retry only after
 * one second.
 */
export const LISTEN_BACKLOG = 4096;

const POLL_MS = 10;
/**
 * Number of consecutive polls without a new connection after which the backlog counts as empty. A time limit would be
 * wrong, because a busy event loop accepts connections late.
 */
const QUIET_POLLS = 4;
/** Maximum time for which a draining server accepts connections that are still in the kernel backlog. */
const MAX_ACCEPTING_MS = 6000;
const REAP_MS = 25;
/** During a drain, maximum time that a new connection can stay open without sending its first byte. */
const MAX_SILENT_MS = 1000;
const DRAIN_MS = 8000;

const drainMsOf = ({ kit }: Http): number => kit.drainMs ?? DRAIN_MS;

/**
 * Returns the time in ms until all open connections are closed. Connections with a request in flight are closed too.
 */
function drainLeftMs(http: Http): number {
  return Math.max(0, Math.min(drainMsOf(http), http.kit.drainEndsAt - performance.now()));
}

/** Starts the time limit of a shutdown before the server closes. Clients no longer keep their connections open. */
export function beginDrain(http: Http): void {
  http.kit.draining = true;
  http.kit.drainEndsAt = performance.now() + drainMsOf(http) + STOP_DEADLINES.httpCutMs;
}

/**
 * Adds a graceful shutdown. Connections in the kernel backlog are still accepted. Idle connections close first, and all
 * other connections close at the deadline.
 */
export function drainOnClose(http: Http): void {
  const { server } = http;
  const acceptedAt = new Map<Socket, number>();
  server.on('connection', (socket: Socket) => {
    http.kit.connections++;
    acceptedAt.set(socket, performance.now());
    socket.once('close', () => acceptedAt.delete(socket));
  });
  http.addHook('preClose', async () => {
    if (!http.kit.draining) beginDrain(http);
    if (!server.listening) return;
    await untilBacklogEmpty(http);
    // On close, Node closes only connections that are idle at that moment. The `reap` timer closes connections that
    // become idle later.
    keepNewConnections(server, acceptedAt);
    const reap = setInterval(() => server.closeIdleConnections(), REAP_MS);
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

/**
 * Defers the closing of idle connections until each new connection has sent its first byte, for at most
 * `MAX_SILENT_MS`. Node treats a new connection as idle and would close the connection too early.
 */
function keepNewConnections(server: Server, acceptedAt: ReadonlyMap<Socket, number>): void {
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    const newSince = performance.now() - MAX_SILENT_MS;
    for (const [socket, at] of acceptedAt) if (socket.bytesRead === 0 && at > newSince) return;
    closeIdle();
  };
}

/**
 * Resolves when the kernel backlog is empty, or at the deadline. Also resolves after `LISTEN_BACKLOG` accepted
 * connections.
 */
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

/** Returns a number that changes with each new connection and request, because both terms only grow. */
function activity({ kit }: Http): number {
  return kit.connections + kit.lastRequestAt;
}

import { setTimeout as sleep } from 'node:timers/promises';
import { STOP_DEADLINES } from '../kit/stop-deadlines.ts';
import type { Http } from './server.ts';

/** Connections that the kernel holds for the listener. Node's 511 makes the rest of a burst wait for a second. */
export const LISTEN_BACKLOG = 4096;

const POLL_MS = 10;
/** Polls without a new connection or request after which the backlog is empty. Polls, not time: a busy loop reads late. */
const QUIET_POLLS = 4;
/** Longest time to accept during a drain. libuv accepts one connection a turn, and turns are slow on a loaded machine. */
const MAX_ACCEPTING_MS = 6000;
export const REAP_MS = 25;
const DRAIN_MS = 8000;

const drainMsOf = ({ kit }: Http): number => kit.drainMs ?? DRAIN_MS;

/** Time left for open requests. Event streams never end by themselves; clients reconnect. */
export function drainLeftMs(http: Http): number {
  return Math.min(drainMsOf(http), http.kit.drainEndsAt - performance.now());
}

/**
 * Ends connections politely. From the first moment every answer says `Connection: close`, but the listener and idle
 * connections stay for a moment: a client that has just sent a request on one would lose it. Then idle ones go as they
 * become idle, and at the deadline the rest.
 */
export function drainPolitely(http: Http): void {
  const { server } = http;
  server.on('connection', () => {
    http.kit.connections++;
  });
  http.addHook('preClose', async () => {
    http.kit.draining = true;
    if (!server.listening) return;
    http.kit.drainEndsAt = performance.now() + drainMsOf(http) + STOP_DEADLINES.httpCutMs;
    await untilQuiet(http);
    // Node closes what is idle when the server closes, and leaves what becomes idle later to its keep-alive time.
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

/** Resolves once the backlog is empty. More connections than it holds must have come after the stop. */
async function untilQuiet(http: Http): Promise<void> {
  const { kit } = http;
  const lastOfBacklog = kit.connections + LISTEN_BACKLOG;
  const endsAt = Math.min(performance.now() + MAX_ACCEPTING_MS, kit.drainEndsAt);
  let quiet = 0;
  while (quiet < QUIET_POLLS && kit.connections < lastOfBacklog && performance.now() < endsAt) {
    const before = news(http);
    await sleep(POLL_MS);
    quiet = news(http) === before ? quiet + 1 : 0;
  }
}

/** Changes with each new connection and request: both parts only grow. */
function news({ kit }: Http): number {
  return kit.connections + kit.lastRequestAt;
}

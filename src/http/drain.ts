import { setTimeout as sleep } from 'node:timers/promises';
import type { Http } from './server.ts';

const POLL_MS = 10;
/** Nothing new in so many polls: nothing is on the wire any more. Counted in polls, not time, as a busy loop sees late what came early. */
const QUIET_POLLS = 4;
const MOST_POLLS = 100;
export const REAP_MS = 25;
/** Streams of events never end by themselves; whoever follows one connects anew. Before the daemon itself gives up. */
export const DRAIN_DEADLINE_MS = 8000;

/**
 * Ends connections politely. From the first moment every answer says `Connection: close`, but the listener and idle
 * connections stay for a moment: a client that has just sent a request on one would lose it. Then idle ones go as they
 * become idle, and at the deadline the rest.
 */
export function drainPolitely(http: Http): void {
  const { server } = http;
  server.on('connection', () => {
    http.kit.lastConnectionAt = performance.now();
  });
  http.addHook('preClose', async () => {
    http.kit.draining = true;
    if (!server.listening) return;
    await untilQuiet(http);
    // Node closes what is idle when the server closes, and leaves what becomes idle later to its keep-alive time.
    const reap = setInterval(() => server.closeIdleConnections(), REAP_MS);
    const cut = setTimeout(() => server.closeAllConnections(), DRAIN_DEADLINE_MS);
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

async function untilQuiet(http: Http): Promise<void> {
  let quiet = 0;
  for (let polls = 0; quiet < QUIET_POLLS && polls < MOST_POLLS; polls++) {
    const before = lastNews(http);
    await sleep(POLL_MS);
    quiet = lastNews(http) === before ? quiet + 1 : 0;
  }
}

function lastNews({ kit }: Http): number {
  return Math.max(kit.lastConnectionAt, kit.lastRequestAt);
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Http } from './server.ts';

/** Long enough for a request that is on the wire when the drain begins. */
const GRACE_MS = 50;
const POLL_MS = 10;
const REAP_MS = 25;
/** Streams of events never end by themselves; whoever follows one connects anew. */
const DEADLINE_MS = 10_000;

/**
 * Ends connections politely. From the first moment every answer says `Connection: close`, but the listener and idle
 * connections stay for a moment: a client that has just sent a request on one would lose it. Then idle ones go as they
 * become idle, and at the deadline the rest.
 */
export function drainPolitely(http: Http): void {
  const { server } = http;
  http.addHook('preClose', async () => {
    http.kit.draining = true;
    for (let waited = 0; waited < GRACE_MS && (await openConnections(http)) > 0; waited += POLL_MS)
      await sleep(POLL_MS);
    // Node closes what is idle when the server closes, and leaves what becomes idle later to its keep-alive time.
    const reap = setInterval(() => server.closeIdleConnections(), REAP_MS);
    const cut = setTimeout(() => server.closeAllConnections(), DEADLINE_MS);
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

function openConnections({ server }: Http): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
}

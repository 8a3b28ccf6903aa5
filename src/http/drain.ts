import { setTimeout as sleep } from 'node:timers/promises';
import type { Http } from './server.ts';

/** Long enough for a request that is on the wire when the drain begins. */
const GRACE_MS = 50;
const POLL_MS = 10;

/**
 * Ends connections politely. From the first moment every answer says `Connection: close` (Fastify does), but the
 * listener and idle connections stay for a moment: a client that has just sent a request on one would lose it.
 */
export function drainPolitely(http: Http): void {
  http.addHook('preClose', async () => {
    for (let waited = 0; waited < GRACE_MS && (await openConnections(http)) > 0; waited += POLL_MS)
      await sleep(POLL_MS);
  });
}

function openConnections({ server }: Http): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
}

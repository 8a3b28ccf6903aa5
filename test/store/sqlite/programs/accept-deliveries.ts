import { systemClock } from '../../../../src/kit/clock.ts';
import { days } from '../../../../src/kit/duration.ts';
import { silentLogger } from '../../../../src/kit/logger.ts';
import { sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { delivery, SUCCEEDED } from '../../../support/new-delivery.ts';
import { print } from './print.ts';

/**
 * accept-deliveries.ts <data folder> <name> [calm]: accepts deliveries, forty at a time, ends every third of them, and
 * prints `accepted <id> <key>` and `ended <id>` once the store has acknowledged it. Calm, it rests in between, so that the
 * journal is emptied and written over. It is there to be killed.
 */
const [dataDir, name, calm] = process.argv.slice(2) as [string, string, string?];
const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger, shared: false });
let next = 0;

async function goOn(): Promise<void> {
  for (;;) {
    const n = next++;
    const key = `${name}:${n}`;
    const one = delivery({ body: Buffer.from(`${key} `.repeat(1 + (n % 500))) });
    await store.inbox.accept(one, { key, expiresAt: systemClock.now() + days(7) }, '');
    print(`accepted ${one.webhookId} ${key}\n`);
    if (calm && n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 100));
    if (n % 3 > 0) continue;
    await store.inbox.finish(one.webhookId, SUCCEEDED);
    print(`ended ${one.webhookId}\n`);
  }
}
await Promise.all(Array.from({ length: 40 }, goOn));

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import { days } from '../../../../src/kit/time/duration.ts';
import { sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { delivery, SUCCEEDED } from '../../../support/new-delivery.ts';
import { print } from './print.ts';

/**
 * accept-deliveries.ts <data folder> <name> [calm | bursts]: accepts deliveries, forty at a time, ends every third of them,
 * and prints `accepted <id> <key>` and `ended <id>` once the store has acknowledged it. Calm, it rests in between, so that
 * the journal is emptied and written over; in bursts, each fills several small files, which are kept for the next. It is
 * there to be killed.
 */
const [dataDir, name, rhythm] = process.argv.slice(2) as [string, string, ('calm' | 'bursts')?];
const small = { segmentBytes: 50_000, maxSegments: 8, spareSegments: 3 };
const store = await sqliteGatewayStore({
  dataDir,
  clock: systemClock,
  logger: silentLogger,
  shared: false,
  ...(rhythm === 'bursts' ? { segments: small } : {}),
});
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100));
const hasSpareFiles = (): boolean =>
  readdirSync(join(dataDir, 'inbox')).some((file) => file.endsWith('.spare'));

/** A slow machine needs more than one rest to apply a burst. The first one leaves no spare files. */
async function restAfterBurst(): Promise<void> {
  for (let rests = 0; rests === 0 || (rests < 20 && !hasSpareFiles()); rests++) await rest();
}

let next = 0;
let pause: Promise<void> | undefined;

async function goOn(): Promise<void> {
  for (;;) {
    const n = next++;
    const key = `${name}:${n}`;
    const one = delivery({ body: Buffer.from(`${key} `.repeat(1 + (n % 500))) });
    await store.inbox.accept(one, { key, expiresAt: systemClock.now() + days(7) }, '');
    print(`accepted ${one.webhookId} ${key}\n`);
    if (rhythm === 'calm' && n % 10 === 0) await rest();
    if (rhythm === 'bursts' && n % 400 === 0) pause = restAfterBurst();
    await pause;
    if (n % 3 > 0) continue;
    await store.inbox.finish(one.webhookId, SUCCEEDED);
    print(`ended ${one.webhookId}\n`);
  }
}
await Promise.all(Array.from({ length: 40 }, goOn));

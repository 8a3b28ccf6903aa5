import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { print } from './print.ts';

/**
 * acknowledge.ts <data folder> <name> <count>: writes `<name>:<i>` and counts it in the shared counter, sixteen at a time, and
 * prints each key once the store has acknowledged it. With an endless count it is there to be killed.
 */
const [dataDir, name, count] = process.argv.slice(2) as [string, string, string];
const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
let next = 0;

async function writeOn(): Promise<void> {
  while (next < Number(count)) {
    const key = `${name}:${next++}`;
    await Promise.all([
      store.cache.set('written', key, key),
      store.cache.increment('counted', 'all', { by: 1 }),
    ]);
    print(`${key}\n`);
  }
}
await Promise.all(Array.from({ length: 16 }, writeOn));
await store.close();

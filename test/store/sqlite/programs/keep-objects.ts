import { systemRandom } from '../../../../src/kit/security/random.ts';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import { sqliteStateStore } from '../../../../src/store/sqlite/index.ts';
import { print } from './print.ts';

/**
 * keep-objects.ts <data folder> <first version>: writes ten objects over and over, each time with the next version as all
 * of its content, and prints `<key> <version>` once the store has acknowledged it. It is there to be killed.
 */
const [dataDir, first] = process.argv.slice(2) as [string, string];
const store = await sqliteStateStore({ dataDir, clock: systemClock, logger: silentLogger });
const objects = store.openObjects({ quotaBytes: 1e9, random: systemRandom() });
const scope = { tenant: 'acme', namespace: 'plugin:x' };

async function writeOn(key: string): Promise<void> {
  for (let version = Number(first); ; version++) {
    const content = `${String(version).padStart(9, '0')}\n`.repeat(2000);
    await objects.write(scope, key, Buffer.from(content));
    print(`${key} ${version}\n`);
  }
}
await Promise.all(Array.from({ length: 10 }, (_, index) => writeOn(`key${index}`)));

import { writeSync } from 'node:fs';
import { systemClock } from '../../../../src/kit/clock.ts';
import { silentLogger } from '../../../../src/kit/logger.ts';
import { sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';

/**
 * acknowledge.ts <data folder> <name> <count>: writes `<name>:<i>` and counts it in the shared counter, sixteen at a time, and
 * prints each key once the store has acknowledged it. With an endless count it is there to be killed.
 */
const [dataDir, name, count] = process.argv.slice(2) as [string, string, string];
const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
let next = 0;

/** Past the kernel's pipe a line survives our death; in a stream's buffer it would not. */
function print(line: string): void {
  for (;;) {
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      // The pipe is full: its reader is slower than we are.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

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

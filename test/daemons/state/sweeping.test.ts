import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startSweeping } from '../../../src/daemons/state/domain/sweeping.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { sqliteStateStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

async function startStore() {
  const clock = manualClock();
  const store = await sqliteStateStore({ dataDir: await tempDir(), clock, logger: silentLogger });
  onTestFinished(() => store.close());
  return { clock, entries: store.entries };
}

test('every minute expired entries are deleted in steps, and the others stay', async () => {
  const { clock, entries } = await startStore();
  const swept: number[] = [];
  const store = {
    async sweep(limit: number) {
      const count = await entries.sweep(limit);
      swept.push(count);
      return count;
    },
  };
  const sweeping = startSweeping({ store, clock, logger: silentLogger });
  await Promise.all(Array.from({ length: 2500 }, (_, i) => entries.set('s', `k${i}`, i, 1000)));
  await entries.set('s', 'kept', 1);
  clock.advance(minutes(1) - 1);
  expect(swept).toEqual([]);
  clock.advance(1);
  await expect.poll(() => swept).toEqual([1000, 1000, 500]);
  await sweeping.stop();
  expect(await entries.get('s', 'kept')).toBeDefined();
});

test('stops between two steps, and does not start again', async () => {
  const { clock, entries } = await startStore();
  const sweeping = startSweeping({ store: entries, clock, logger: silentLogger });
  await Promise.all(Array.from({ length: 2500 }, (_, i) => entries.set('s', `k${i}`, i, 1000)));
  clock.advance(minutes(1));
  await sweeping.stop();
  clock.advance(minutes(5));
  await sleep(20);
  expect(await entries.sweep(5000)).toBe(1500);
});

test('a failure is logged, and the next minute retries', async () => {
  const { clock, entries } = await startStore();
  const told: string[] = [];
  let failures = 1;
  const store = {
    sweep: async (limit: number) => {
      if (failures-- > 0) throw new Error('no room');
      return entries.sweep(limit);
    },
  };
  const logger = { ...silentLogger, diagnostic: ({ event }: { event: string }) => void told.push(event) };
  const sweeping = startSweeping({ store, clock, logger });
  await entries.set('s', 'k', 1, 1000);
  clock.advance(minutes(1));
  await expect.poll(() => told).toEqual(['state.sweep_failed']);
  clock.advance(minutes(1));
  await sweeping.stop();
  expect(await entries.sweep(10)).toBe(0);
});

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startProgram } from './programs/start.ts';

/** What the folder holds: the keys written, and the counter that was raised beside each. */
async function contents(dataDir: string): Promise<{ keys: Set<string>; counted: number }> {
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
  const entries = await store.cache.scan('written', { prefix: '', limit: 1_000_000 });
  const counter = await store.cache.get('counted', 'all');
  await store.close();
  return { keys: new Set(entries.map(({ key }) => key)), counted: (counter?.value as number) ?? 0 };
}

test('acknowledged writes survive repeated kill -9', async () => {
  const dataDir = await tempDir();
  const acknowledged: string[] = [];
  for (const round of ['a', 'b', 'c']) {
    const writer = startProgram('acknowledge', dataDir, round, 'Infinity');
    await writer.printed(300);
    await writer.kill();
    acknowledged.push(...writer.lines);

    const { keys, counted } = await contents(dataDir);
    expect(acknowledged.filter((key) => !keys.has(key))).toEqual([]);
    expect(counted).toBeGreaterThanOrEqual(acknowledged.length);
  }
});

test('two processes write to one file while a third reads and writes', async () => {
  const dataDir = await tempDir();
  const writers = ['a', 'b'].map((name) => startProgram('acknowledge', dataDir, name, '400'));
  await Promise.all(writers.map((writer) => writer.printed(50)));
  const third = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
  for (let i = 0; i < 100; i++) await third.cache.increment('counted', 'all', { by: 1 });
  await third.close();
  expect(await Promise.all(writers.map((writer) => writer.ended))).toEqual([0, 0]);
  const { keys, counted } = await contents(dataDir);
  expect(keys.size).toBe(800);
  expect(counted).toBe(900);
});

test.skipIf(process.platform !== 'linux')(
  'a log that cannot be synced ends the process before any acknowledgement',
  async () => {
    const writer = startProgram('lose-log', join(await tempDir(), 'lines.db'));
    expect(await writer.ended).toBe(1);
    expect(writer.lines).toEqual(['first']);
    expect(writer.errors()).toMatch(/EBADF.*fdatasync/);
  },
);

import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../../src/kit/time/clock.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { startProgram } from '../../programs/start.ts';
import {
  type Acknowledged,
  errorsInto,
  expectAll,
  journalOf,
  openStore,
  readLines,
  records,
} from '../journalled-store.ts';
import { formerFolder, LEFT } from './former-journal.ts';

test('acknowledged deliveries survive each of seven kill -9, whether or not the next process is alone', async () => {
  const dataDir = await tempDir();
  const acknowledged: Acknowledged = { accepted: new Map(), ended: new Set() };
  let leftAny = 0;
  for (const round of ['a', 'b', 'calm c', 'calm d', 'bursts e', 'bursts f', 'bursts g']) {
    const [rhythm, name] = round.includes(' ') ? (round.split(' ') as [string, string]) : ['', round];
    const writer = startProgram('accept-deliveries', dataDir, name, rhythm);
    await writer.printed(rhythm === 'calm' ? 800 : 2000);
    // Between two bursts: the files that are kept have been used and put back a few times.
    if (name === 'g') await expect.poll(() => readdirSync(journalOf(dataDir)).join()).toContain('.spare');
    await writer.kill();
    readLines(writer.lines, acknowledged);
    leftAny += readdirSync(journalOf(dataDir)).length;
    // As one of several processes too, when the configuration has changed in between.
    const store = await openStore(dataDir, silentLogger, { shared: round === 'b' });
    expect(existsSync(journalOf(dataDir))).toBe(false);
    await expectAll(store, acknowledged);
    await store.close();
  }
  expect(leftAny).toBeGreaterThan(0);
});

test('a start killed at any point loses no data for the next', async () => {
  const dataDir = await formerFolder();
  const opened = await timeOf(startProgram('end', await formerFolder(), 'leave').printed(1));
  for (let n = 1; n <= 10; n++) {
    const starting = startProgram('end', dataDir, 'leave');
    await sleep((opened * (n + 4)) / 14);
    await starting.kill();
  }
  const told: string[] = [];
  expect(await records(await openStore(dataDir, errorsInto(told)))).toEqual(LEFT);
  expect(told).toEqual([]);
});

async function timeOf(done: Promise<void>): Promise<number> {
  const began = systemClock.now();
  await done;
  return systemClock.now() - began;
}

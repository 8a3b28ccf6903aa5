import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../../../src/kit/files/paths.ts';
import { systemClock } from '../../../../../src/kit/time/clock.ts';
import { openDatabase } from '../../../../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../../../../src/store/sqlite/svc/schema.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { startProgram } from '../../programs/start.ts';
import { errorsInto, journalOf, openStore, records } from '../journalled-store.ts';
import { databaseOf } from './journal-bytes.ts';

/**
 * What a gateway of schema 6 left that was killed: frames 4 to 7, of which its database has none. Three accepted
 * deliveries with markers `k0` to `k2`, and the end of the first.
 */
const FORMER = join(packageRoot, 'test/fixtures/journals/inbox-of-schema-6.bin');
const IDS = [1, 2, 3].map((n) => `01890000-0000-7000-8000-00000000000${n}`);
const LEFT = new Map([IDS[0]!, IDS[1]!, IDS[2]!].map((id, n) => [id, n === 0 ? 'succeeded' : 'accepted']));

async function formerFolder(applied = 3): Promise<string> {
  const dataDir = await tempDir();
  const file = join(dataDir, 'svc.db');
  const old = await openDatabase({ file, migrations: GATEWAY_MIGRATIONS.slice(0, 6) });
  await old.write(() => old.prepare('update delivery_journal set applied = ?').run(applied));
  await old.close();
  mkdirSync(journalOf(dataDir));
  copyFileSync(FORMER, join(journalOf(dataDir), '0.log'));
  return dataDir;
}

test('what the version before had acknowledged and not filed is filed, and the database gets an id', async () => {
  const dataDir = await formerFolder();
  const told: string[] = [];
  const store = await openStore(dataDir, errorsInto(told));
  expect(await records(store)).toEqual(LEFT);
  expect((await store.inbox.find(IDS[1]!))!.body).toEqual(Buffer.from('{"n":1}'));
  expect(await store.inbox.seen('k2', systemClock.now())).toBe('done');
  expect(told).toEqual([]);
  expect(existsSync(journalOf(dataDir))).toBe(false);
  const id = databaseOf(dataDir);
  expect(id).toHaveLength(16);
  await store.close();
  await (await openStore(dataDir)).close();
  expect(databaseOf(dataDir)).toEqual(id);
});

test('a start that is killed, whenever, has lost nothing for the next', async () => {
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

test('frames that are missing before them are told, and the files kept', async () => {
  const dataDir = await formerFolder(2);
  const told: string[] = [];
  expect((await records(await openStore(dataDir, errorsInto(told)))).size).toBe(0);
  expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  expect(await readFile(join(dataDir, 'inbox-damaged', '0.log'))).toEqual(await readFile(FORMER));
});

test('files without an id beside a database that has one are set aside', async () => {
  const dataDir = await tempDir();
  await (await openStore(dataDir)).close();
  mkdirSync(journalOf(dataDir));
  copyFileSync(FORMER, join(journalOf(dataDir), '0.log'));
  const told: string[] = [];
  expect((await records(await openStore(dataDir, errorsInto(told)))).size).toBe(0);
  expect(readdirSync(journalOf(dataDir))).toEqual(['0.log.of-unknown-database']);
  expect(told).toEqual([expect.stringContaining('of-unknown-database')]);
});

test.each([
  ['its first page', (bytes: Buffer) => bytes.fill(0, 0, 512)],
  ['all of it', (bytes: Buffer) => bytes.fill(0)],
])('a file of the version before of which the disk has lost %s is told and kept', async (_, lose) => {
  const dataDir = await formerFolder();
  await writeFile(join(journalOf(dataDir), '0.log'), lose(await readFile(FORMER)));
  const told: string[] = [];
  await openStore(dataDir, errorsInto(told));
  expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  expect(readdirSync(join(dataDir, 'inbox-damaged'))).toEqual(['0.log']);
});

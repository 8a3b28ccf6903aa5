import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../../../src/kit/time/clock.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { errorsInto, journalOf, openStore, records } from '../journalled-store.ts';
import { FORMER, formerFolder, IDS, LEFT } from './former-journal.ts';
import { databaseOf } from './journal-bytes.ts';

test('deliveries in the journal of the previous version are applied, and the database gets an id', async () => {
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

test('missing frames are reported, and the files are kept', async () => {
  const dataDir = await formerFolder(2);
  const told: string[] = [];
  expect((await records(await openStore(dataDir, errorsInto(told)))).size).toBe(0);
  expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  expect(await readFile(join(dataDir, 'inbox-damaged', '0.log'))).toEqual(await readFile(FORMER));
});

test('files without an id are quarantined if the database has one', async () => {
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
])('a file of the previous version is reported and kept when the disk has lost %s', async (_, lose) => {
  const dataDir = await formerFolder();
  await writeFile(join(journalOf(dataDir), '0.log'), lose(await readFile(FORMER)));
  const told: string[] = [];
  await openStore(dataDir, errorsInto(told));
  expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  expect(readdirSync(join(dataDir, 'inbox-damaged'))).toEqual(['0.log']);
});

import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { stageData } from '../../../../../src/cli/commands/backup/stage.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery } from '../../../../support/new-delivery.ts';
import {
  errorsInto,
  expectFiled,
  journalOf,
  openStore,
  records,
  refuseRows,
  withUnfiled,
} from '../journalled-store.ts';
import { databaseOf } from './journal-bytes.ts';

/** One whose database has filed so many more frames than any other here. */
async function withFiled(count: number): Promise<string> {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  for (let n = 0; n < count; n++) await store.inbox.accept(delivery(), undefined, '');
  await store.close();
  return dataDir;
}

function moveDatabase(from: string, to: string): void {
  for (const name of ['svc.db', 'svc.db-wal', 'svc.db-shm']) {
    rmSync(join(to, name), { force: true });
    if (existsSync(join(from, name))) renameSync(join(from, name), join(to, name));
  }
}

test.each([
  ['a fresh one', () => tempDir()],
  ['one from another machine that is ahead', () => withFiled(20)],
  ['one from another machine that is behind', () => withFiled(1)],
])(
  'beside %s, what another svc.db has not filed is set aside and said, and filed where it belongs',
  async (_, other) => {
    const { dataDir, webhookId } = await withUnfiled();
    const own = databaseOf(dataDir).toString('hex', 0, 4);
    const [kept, stranger] = [await tempDir(), await other()];
    moveDatabase(dataDir, kept);
    moveDatabase(stranger, dataDir);
    const journal = readFileSync(join(journalOf(dataDir), '0.log'));

    const aside = `0.log.of-database-${own}`;
    for (const start of ['first', 'second']) {
      const told: string[] = [];
      const store = await openStore(dataDir, errorsInto(told));
      expect(told, start).toEqual([expect.stringContaining(aside)]);
      expect(told[0]).toContain(databaseOf(dataDir).toString('hex', 0, 4));
      expect((await records(store)).has(webhookId)).toBe(false);
      // It goes on with a journal of its own, which takes nothing of what is kept.
      expect(await store.inbox.accept(delivery(), undefined, '')).toBe('begun');
      await store.close();
      expect(readdirSync(journalOf(dataDir))).toEqual([aside]);
      expect(readFileSync(join(journalOf(dataDir), aside))).toEqual(journal);
    }

    // As the message says.
    moveDatabase(kept, dataDir);
    renameSync(join(journalOf(dataDir), aside), join(journalOf(dataDir), '0.log'));
    const told: string[] = [];
    expect((await records(await openStore(dataDir, errorsInto(told)))).get(webhookId)).toBe('accepted');
    expect(told).toEqual([]);
  },
);

test('of the files of two databases in one folder, its own are applied and the others are quarantined', async () => {
  const [own, other] = [await withUnfiled(), await withUnfiled()];
  const foreign = join(journalOf(other.dataDir), '0.log');
  const aside = `of-database-${databaseOf(other.dataDir).toString('hex', 0, 4)}`;
  copyFileSync(foreign, join(journalOf(own.dataDir), '1.log'));
  copyFileSync(foreign, join(journalOf(own.dataDir), `1.log.${aside}`));
  const told: string[] = [];
  const store = await openStore(own.dataDir, errorsInto(told));
  expect((await records(store)).get(own.webhookId)).toBe('accepted');
  expect(told).toEqual([expect.stringContaining(aside)]);
  await store.close();
  expect(readdirSync(journalOf(own.dataDir)).sort()).toEqual([`1.log.${aside}`, `1.log.${aside}-2`]);
});

test('foreign files in the folder of a running gateway are neither overwritten nor removed', async () => {
  const { dataDir: other } = await withUnfiled();
  const dataDir = await tempDir();
  const store = await openStore(dataDir, undefined, {
    segments: { segmentBytes: 500, maxSegments: 4, spareSegments: 0 },
  });
  const giveWay = refuseRows(dataDir);
  await store.inbox.accept(delivery(), undefined, '');
  const put = join(journalOf(dataDir), '1.log');
  copyFileSync(join(journalOf(other), '0.log'), put);
  const body = Buffer.alloc(600);
  for (let n = 0; n < 3; n++) await store.inbox.accept(delivery({ body }), undefined, '');
  expect(readdirSync(journalOf(dataDir)).length).toBeGreaterThan(2);
  giveWay();
  await expectFiled(store, 4);
  await store.close();
  expect(readdirSync(journalOf(dataDir))).toEqual(['1.log']);
  expect(readFileSync(put)).toEqual(readFileSync(join(journalOf(other), '0.log')));
});

test('an older copy of svc.db applies the frames that follow it, and a gap quarantines all files', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  await store.inbox.accept(delivery(), undefined, '');
  await records(store);
  const [before, later] = [await tempDir(), await tempDir()];
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  disk.exec(`vacuum into '${join(before, 'svc.db')}'`);
  disk.close();
  const next = delivery();
  await store.inbox.accept(next, undefined, '');
  cpSync(journalOf(dataDir), journalOf(before), { recursive: true });
  await records(store);
  await store.inbox.accept(delivery(), undefined, '');
  await records(store);
  await store.inbox.accept(delivery(), undefined, '');
  cpSync(journalOf(dataDir), journalOf(later), { recursive: true });
  copyFileSync(join(before, 'svc.db'), join(later, 'svc.db'));
  const told: string[] = [];
  const followed = await openStore(before, errorsInto(told));
  expect((await records(followed)).get(next.webhookId)).toBe('accepted');
  expect(told).toEqual([]);

  const id = databaseOf(later);
  await (await openStore(later, errorsInto(told))).close();
  expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  expect(readdirSync(join(later, 'inbox-damaged'))).toEqual(['0.log']);
  // Put back, they are not taken for what it has filed since: its numbers mean something else by now.
  expect(databaseOf(later)).not.toEqual(id);
  await (await openStore(later)).close();
  renameSync(join(later, 'inbox-damaged'), journalOf(later));
  await (await openStore(later, errorsInto(told))).close();
  expect(told[1]).toContain(`0.log.of-database-${id.toString('hex', 0, 4)}`);
});

test('a backup contains quarantined files and the content of the journal', async () => {
  const [own, other] = [await withUnfiled(), await withUnfiled()];
  copyFileSync(join(journalOf(other.dataDir), '0.log'), join(journalOf(own.dataDir), '0.log.of-database-x'));
  const stage = await tempDir();
  await stageData({
    dataDir: own.dataDir,
    stage,
    withKeys: true,
    withTelemetry: true,
    masterKey: () => null,
  });
  expect(readdirSync(journalOf(stage)).sort()).toEqual(['0.log', '0.log.of-database-x']);
  expect((await records(await openStore(stage))).get(own.webhookId)).toBe('accepted');
});

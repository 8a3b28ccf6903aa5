import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { type Logger, silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery } from '../../../../support/new-delivery.ts';
import { expectFiled, journalOf, openStore, records, refuseRows } from '../journalled-store.ts';

/** What somebody may do to the folder of a running gateway. */
const DEEDS: Array<[string, (folder: string) => void]> = [
  ['a file is removed', (folder) => rmSync(join(folder, '0.log'))],
  ['the folder is removed', (folder) => rmSync(folder, { recursive: true })],
  ['the folder is moved away', (folder) => renameSync(folder, `${folder}-elsewhere`)],
  [
    'another file takes the place of one',
    (folder) => {
      writeFileSync(join(folder, 'other'), 'other');
      renameSync(join(folder, 'other'), join(folder, '0.log'));
    },
  ],
];

test.each(DEEDS)(
  '%s under a running gateway: what it held is filed, and what comes next is safe',
  async (_, deed) => {
    const dataDir = await tempDir();
    const told: string[] = [];
    const diagnostic: Logger['diagnostic'] = ({ reasonCode }) => void told.push(reasonCode);
    const store = await openStore(dataDir, { ...silentLogger, diagnostic });
    const giveWay = refuseRows(dataDir);
    await store.inbox.accept(delivery({ body: Buffer.alloc(5000, 1) }), undefined, '');
    deed(journalOf(dataDir));
    giveWay();
    await expectFiled(store, 1);
    const giveWayAgain = refuseRows(dataDir);
    const next = delivery();
    await store.inbox.accept(next, undefined, '');
    const killed = await tempDir();
    cpSync(dataDir, killed, { recursive: true });
    giveWayAgain();
    await expectFiled(store, 2);
    expect(told.filter((code) => code === 'JOURNAL_FILE_GONE')).toHaveLength(1);
    dropTriggers(killed);
    expect((await records(await openStore(killed))).get(next.webhookId)).toBe('accepted');
  },
);

function dropTriggers(dataDir: string): void {
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  disk.exec('drop trigger no_room');
  disk.close();
}

const segments = { segmentBytes: 500, maxSegments: 4, spareSegments: 3 };

/** Fills more than one file, and waits until those that are kept are put aside. */
async function burst(store: Awaited<ReturnType<typeof openStore>>, dataDir: string): Promise<string[]> {
  const giveWay = refuseRows(dataDir);
  for (let n = 0; n < 3; n++) await store.inbox.accept(delivery({ body: Buffer.alloc(600) }), undefined, '');
  giveWay();
  const spare = () => readdirSync(journalOf(dataDir)).filter((name) => name.endsWith('.spare'));
  await expect.poll(spare, { timeout: 5000 }).toHaveLength(2);
  return spare().map((name) => join(journalOf(dataDir), name));
}

test('removed spare files are replaced', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir, silentLogger, { segments });
  for (const file of await burst(store, dataDir)) rmSync(file);
  await burst(store, dataDir);
  expect((await records(store)).size).toBe(6);
});

test('a file that replaces a spare one is neither used nor removed', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir, silentLogger, { segments });
  const files = await burst(store, dataDir);
  for (const file of files) {
    rmSync(file);
    writeFileSync(file, 'other');
  }
  const giveWay = refuseRows(dataDir);
  for (let n = 0; n < 3; n++) await store.inbox.accept(delivery({ body: Buffer.alloc(600) }), undefined, '');
  giveWay();
  await expectFiled(store, 6);
  for (const file of files) expect(readFileSync(file, 'utf8')).toBe('other');
});

import { cpSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { stageData } from '../../../../../src/cli/commands/backup/stage.ts';
import { silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import type { NewDelivery } from '../../../../../src/store/ports/index.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery, SUCCEEDED } from '../../../../support/new-delivery.ts';
import { startProgram } from '../../programs/start.ts';
import {
  type Acknowledged,
  errorsInto,
  expectAll,
  inAWeek,
  journalOf,
  openStore,
  readLines,
  records,
  refuseRows,
} from '../journalled-store.ts';

test('a backup contains the journal, both after a kill and during writes', async () => {
  const dataDir = await tempDir();
  const writer = startProgram('accept-deliveries', dataDir, 'a');
  await writer.printed(3000);
  const before: Acknowledged = { accepted: new Map(), ended: new Set() };
  readLines(writer.lines, before);
  const stages = [await tempDir(), await tempDir()] as const;
  const options = { dataDir, withKeys: true, withTelemetry: true, masterKey: () => null };
  await stageData({ ...options, stage: stages[0] });
  await writer.kill();
  const whole: Acknowledged = { accepted: new Map(), ended: new Set() };
  readLines(writer.lines, whole);
  await stageData({ ...options, stage: stages[1] });
  const told: string[] = [];
  await expectAll(await openStore(stages[0], errorsInto(told)), before);
  await expectAll(await openStore(stages[1], errorsInto(told)), whole);
  expect(told).toEqual([]);
});

test('full files are overwritten once they are applied, and some are kept for the next burst', async () => {
  const dataDir = await tempDir();
  const segments = { segmentBytes: 20_000, maxSegments: 3, spareSegments: 1 };
  const store = await openStore(dataDir, silentLogger, { segments });
  const files = () =>
    (existsSync(journalOf(dataDir)) ? readdirSync(journalOf(dataDir)) : [])
      .map((name) => name.replace(/^\d+/, ''))
      .sort();
  const other = new Sqlite(join(dataDir, 'svc.db'));
  onTestFinished(() => void other.close());
  const accepted: NewDelivery[] = [];
  for (const burst of [1, 2]) {
    let most = 0;
    const deliveries = Array.from({ length: 1000 }, (_, n) => delivery({ body: Buffer.alloc(burst * n) }));
    // Nothing can be applied until all files are full.
    other.exec('begin immediate');
    const accept = async (one: NewDelivery) => {
      const claim = { key: one.webhookId, expiresAt: inAWeek() };
      expect(await store.inbox.accept(one, claim, '')).toBe('begun');
      most = Math.max(most, files().length);
    };
    const accepting: Array<Promise<void>> = [];
    for (const one of deliveries) {
      const acceptance = accept(one);
      accepting.push(acceptance);
      // One at a time until the last file is begun: a single frame would hold them all.
      if (files().filter((name) => name === '.log').length < segments.maxSegments) await acceptance;
    }
    await expect.poll(files).toEqual(['.log', '.log', '.log']);
    other.exec('rollback');
    await Promise.all(accepting);
    accepted.push(...deliveries);
    expect(most).toBe(3);
    await expect.poll(files).toEqual(['.log', '.log.spare']);
  }
  const found = await records(store);
  expect(accepted.filter(({ webhookId }) => !found.has(webhookId))).toEqual([]);
  for (const one of accepted.filter((_, n) => n % 100 === 0))
    expect((await store.inbox.find(one.webhookId))!.body).toEqual(one.body);
  await store.close();
  expect(existsSync(journalOf(dataDir))).toBe(false);
});

test('spare files are removed by the next start and are not in backups', async () => {
  const dataDir = await tempDir();
  const segments = { segmentBytes: 500, maxSegments: 3, spareSegments: 3 };
  const store = await openStore(dataDir, silentLogger, { segments });
  const giveWay = refuseRows(dataDir);
  const accepted = [1, 2, 3].map(() => delivery({ body: Buffer.alloc(600) }));
  for (const one of accepted) await store.inbox.accept(one, undefined, '');
  giveWay();
  await expect.poll(() => readdirSync(journalOf(dataDir)), { timeout: 5000 }).toContain('0.log.spare');
  const [killed, stage] = [await tempDir(), await tempDir()];
  cpSync(dataDir, killed, { recursive: true });
  await stageData({ dataDir, stage, withKeys: true, withTelemetry: true, masterKey: () => null });
  expect(readdirSync(journalOf(stage)).filter((name) => name.endsWith('.spare'))).toEqual([]);
  const told: string[] = [];
  const next = await openStore(killed, errorsInto(told));
  expect([...(await records(next)).keys()].sort()).toEqual(accepted.map(({ webhookId }) => webhookId).sort());
  expect(existsSync(journalOf(killed))).toBe(false);
  expect(told).toEqual([]);
});

test('an ended delivery is not unfinished, even before the database contains its end', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  const [ended, open] = [delivery(), delivery()];
  for (const one of [ended, open]) await store.inbox.accept(one, undefined, '');
  // Both are in the database, where nothing changes any more.
  expect(await store.inbox.unfinished(2)).toHaveLength(2);
  const giveWay = refuseRows(dataDir, 'update');
  await store.inbox.finish(ended.webhookId, SUCCEEDED);
  expect((await store.inbox.unfinished(1)).map(({ webhookId }) => webhookId)).toEqual([open.webhookId]);
  giveWay();
});

test('a retried delivery is unfinished with its time, even before the database contains it', async () => {
  const store = await openStore(await tempDir());
  const [failing, other] = [delivery(), delivery()];
  for (const one of [failing, other]) await store.inbox.accept(one, undefined, '');
  expect(await store.inbox.unfinished(2)).toHaveLength(2);
  const nextAttemptAt = inAWeek();
  await store.inbox.finish(failing.webhookId, { ...SUCCEEDED, status: 'retrying', nextAttemptAt });
  expect(await store.inbox.unfinished(1)).toMatchObject([
    { webhookId: failing.webhookId, status: 'retrying', attempts: 1, nextAttemptAt },
  ]);
});

test('a duplicate is detected during a burst, before any marker is in the database', async () => {
  const store = await openStore(await tempDir());
  const accept = (key: string) => store.inbox.accept(delivery(), { key, expiresAt: inAWeek() }, '');
  const keys = Array.from({ length: 1500 }, (_, n) => `${n}`);
  expect(new Set(await Promise.all(keys.map(accept)))).toEqual(new Set(['begun']));
  expect(new Set(await Promise.all(keys.map(accept)))).toEqual(new Set(['done']));
  expect((await records(store)).size).toBe(1500);
});

test('reading unfinished deliveries applies only as much of a burst as it needs', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  const body = Buffer.alloc(10_000);
  const accepted = Array.from({ length: 2000 }, () => delivery({ body }));
  const accepting = accepted.map((one) => store.inbox.accept(one, undefined, ''));
  // The burst lasts for as long as the reader takes, however slow the machine is.
  let isRead = false;
  const senders = Array.from({ length: 100 }, async () => {
    while (!isRead) await store.inbox.accept(delivery(), undefined, '');
  });
  await Promise.all(accepting);
  const found = await store.inbox.unfinished(100);
  const disk = new Sqlite(join(dataDir, 'svc.db'), { readonly: true });
  const moved = disk.prepare('select count(*) from delivery').pluck().get() as number;
  disk.close();
  isRead = true;
  await Promise.all(senders);
  expect(moved * body.length).toBeLessThan(6_000_000);
  const ids = accepted.map(({ webhookId }) => webhookId);
  expect(found.map(({ webhookId }) => webhookId)).toEqual(ids.slice(0, 100));
  const all = await store.inbox.unfinished(1_000_000);
  expect(all.slice(0, 2000).map(({ webhookId }) => webhookId)).toEqual(ids);
});

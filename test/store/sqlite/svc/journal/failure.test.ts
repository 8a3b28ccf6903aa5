import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { type Logger, silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../../src/kit/time/clock.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { fillDisk } from '../../../../support/full-disk.ts';
import { delivery } from '../../../../support/new-delivery.ts';
import { startProgram } from '../../programs/start.ts';
import {
  errorsInto,
  expectFiled,
  inAWeek,
  journalOf,
  openStore,
  records,
  refuseRows,
} from '../journalled-store.ts';

test('while the database refuses writes, deliveries are accepted and queries get the reason', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  const store = await openStore(dataDir, errorsInto(told));
  const giveWay = refuseRows(dataDir);
  const accepted = [delivery(), delivery({ body: Buffer.alloc(100_000, 1) })];
  for (const one of accepted)
    expect(await store.inbox.accept(one, { key: one.webhookId, expiresAt: inAWeek() }, '')).toBe('begun');
  await expect(store.inbox.find(accepted[0]!.webhookId)).rejects.toThrow('no room');
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('retried every second');
  expect(store.inbox.waitingBytes).toBeGreaterThan(100_000);
  giveWay();
  await expectFiled(store, 2);
  expect(store.inbox.waitingBytes).toBe(0);
  expect((await store.inbox.find(accepted[1]!.webhookId))!.body).toEqual(Buffer.alloc(100_000, 1));
});

test('a database that refuses writes until the end keeps the journal for the next start', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  const giveWay = refuseRows(dataDir);
  const one = delivery();
  await store.inbox.accept(one, undefined, '');
  await store.close();
  expect(readdirSync(journalOf(dataDir))).toHaveLength(1);
  giveWay();
  expect((await records(await openStore(dataDir))).get(one.webhookId)).toBe('accepted');
});

test.runIf(process.platform === 'linux')(
  'a full disk refuses a delivery with STORE_ERROR and leaves no trace of it; with room again, all goes on',
  async () => {
    const dataDir = await tempDir();
    const store = await openStore(dataDir);
    const claim = { key: 'k', expiresAt: inAWeek() };
    await store.inbox.accept(delivery(), undefined, '');
    // Until it is filed, the file is also read.
    await expectFiled(store, 1);
    const giveRoom = fillDisk(join(journalOf(dataDir), '0.log'));
    for (const attempt of [1, 2])
      await expect(store.inbox.accept(delivery(), claim, ''), `${attempt}`).rejects.toMatchObject({
        code: 'STORE_ERROR',
        message: expect.stringContaining('no room left'),
      });
    expect(await store.inbox.seen('k', systemClock.now())).toBeUndefined();
    giveRoom();
    expect(await store.inbox.accept(delivery(), claim, '')).toBe('begun');
    expect((await records(store)).size).toBe(2);
  },
);

test('a delivery is refused when the journal is full and the database refuses writes', async () => {
  const dataDir = await tempDir();
  const segments = { segmentBytes: 1000, maxSegments: 1, spareSegments: 0 };
  const store = await openStore(dataDir, silentLogger, { segments });
  const giveWay = refuseRows(dataDir);
  const body = Buffer.alloc(1000);
  await store.inbox.accept(delivery({ body }), undefined, '');
  await expect(store.inbox.accept(delivery({ body }), undefined, '')).rejects.toThrow('no room');
  giveWay();
  await expect
    .poll(() => store.inbox.accept(delivery({ body }), undefined, '').catch(() => 'refused'), {
      timeout: 10_000,
    })
    .toBe('begun');
  expect((await records(store)).size).toBe(2);
});

test('a query after close is rejected at once, even if the database refused writes', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  refuseRows(dataDir);
  await store.inbox.accept(delivery(), undefined, '');
  await expect(records(store)).rejects.toThrow('no room');
  await store.close();
  await expect(records(store)).rejects.toThrow();
});

test('a journal file that is truncated under a running gateway causes STORE_ERROR with its name', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  await store.inbox.accept(delivery(), undefined, '');
  const file = join(journalOf(dataDir), '0.log');
  truncateSync(file);
  await expect(records(store)).rejects.toMatchObject({ code: 'STORE_ERROR', details: { file } });
});

test.each(['leave', 'fail'])('an open store does not keep the process alive: %s', async (how) => {
  const program = startProgram('end', await tempDir(), how);
  expect(await program.ended).toBe(0);
  expect(program.lines).toEqual(how === 'fail' ? ['opened', 'closed'] : ['opened']);
});

test('with a locked database, closing is quick and reports the rest, which the next start applies', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  const diagnostic: Logger['diagnostic'] = ({ message }) => void told.push(message);
  const store = await openStore(dataDir, { ...silentLogger, diagnostic });
  await store.inbox.accept(delivery(), undefined, '');
  await records(store);
  const other = new Sqlite(join(dataDir, 'svc.db'));
  other.exec('begin immediate');
  const one = delivery({ body: Buffer.alloc(5000) });
  await store.inbox.accept(one, undefined, '');
  const content = expect(store.inbox.find(one.webhookId)).rejects.toMatchObject({ code: 'STORE_ERROR' });
  const pruning = expect(store.inbox.prune({ receivedBefore: 0, now: 0, limit: 1 })).rejects.toMatchObject({
    code: 'STORE_ERROR',
  });
  const began = systemClock.now();
  await store.close();
  // Less than the committing thread would wait for the lock.
  expect(systemClock.now() - began).toBeLessThan(10_000);
  await Promise.all([content, pruning]);
  expect(told).toEqual([expect.stringMatching(/^5\.\d KiB .* are still in .*inbox\. The next start/)]);
  other.exec('commit');
  other.close();
  expect((await records(await openStore(dataDir))).get(one.webhookId)).toBe('accepted');
});

test('slow applying is left to the next start when the gateway closes', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  const diagnostic: Logger['diagnostic'] = ({ message }) => void told.push(message);
  const store = await openStore(dataDir, { ...silentLogger, diagnostic });
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  disk.exec(`create trigger slow before insert on delivery begin
    select count(*) from (with recursive c(n) as (select 1 union all select n + 1 from c where n < 1000000) select n from c);
  end`);
  const body = Buffer.alloc(1_000_000);
  const accepted = Array.from({ length: 60 }, () => delivery({ body }));
  for (const one of accepted) await store.inbox.accept(one, undefined, '');
  await store.close();
  expect(told).toEqual([expect.stringMatching(/MiB .* are still in /)]);
  disk.exec('drop trigger slow');
  disk.close();
  expect((await records(await openStore(dataDir))).size).toBe(60);
});

test('a database lock of one second delays no response', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  const store = await openStore(dataDir, errorsInto(told));
  const other = new Sqlite(join(dataDir, 'svc.db'));
  other.exec('begin immediate');
  await store.inbox.accept(delivery(), undefined, '');
  setTimeout(() => other.exec('commit').close(), 1000);
  expect((await records(store)).size).toBe(1);
  expect(told).toEqual([]);
});

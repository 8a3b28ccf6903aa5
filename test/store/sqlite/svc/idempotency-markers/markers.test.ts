import { createHash } from 'node:crypto';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../../../src/kit/time/clock.ts';
import { days } from '../../../../../src/kit/time/duration.ts';
import { type Database, openDatabase } from '../../../../../src/store/sqlite/index.ts';
import { createMarkerIndex } from '../../../../../src/store/sqlite/svc/idempotency-markers/marker-index.ts';
import { GATEWAY_MIGRATIONS } from '../../../../../src/store/sqlite/svc/schema.ts';
import { sqliteWebhookInbox } from '../../../../../src/store/sqlite/svc/webhook-inbox.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery } from '../../../../support/new-delivery.ts';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest().subarray(0, 16);

test('the index finds all ids of a digest, newest first, and drops tables of outdated ids when it grows', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(500), { maxLength: 3000 }), fc.nat(3000), (keys, oldest) => {
      const index = createMarkerIndex(() => oldest);
      const model = new Map<number, number[]>();
      keys.forEach((key, place) => {
        index.add(digest(String(key)), place + 1);
        model.set(key, [place + 1, ...(model.get(key) ?? [])]);
      });
      for (const [key, ids] of model) {
        const found = index.find(digest(String(key)));
        expect(found).toEqual([...found].sort((a, b) => b - a));
        expect(found.filter((id) => id >= oldest)).toEqual(ids.filter((id) => id >= oldest));
        expect(ids).toEqual(expect.arrayContaining(found));
      }
      expect(index.find(digest('absent'))).toEqual([]);
    }),
    { numRuns: 20 },
  );
});

async function openSmall(maxIndexed: number) {
  const file = join(await tempDir(), 'svc.db');
  const clock = manualClock();
  async function open(wrap = (db: Database): Database => db) {
    const db = await openDatabase({ file, migrations: GATEWAY_MIGRATIONS });
    const inbox = await sqliteWebhookInbox(wrap(db), { clock, logger: silentLogger, maxIndexed });
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= inbox.close().then(() => db.close()));
    onTestFinished(close);
    return { inbox, close };
  }
  return { open, clock };
}

test('markers that exceed the memory limit are found until they expire, also after a restart', async () => {
  const { open, clock } = await openSmall(10);
  const first = await open();
  const expiresAt = clock.now() + days(7);
  const keys = Array.from({ length: 50 }, (_, n) => `k${n}`);
  for (const key of keys) expect(await first.inbox.accept(delivery(), { key, expiresAt }, '')).toBe('begun');
  const prune = { receivedBefore: 0, now: clock.now(), limit: 15 };
  while ((await first.inbox.prune(prune)) > 0);
  for (const key of keys) expect(await first.inbox.accept(delivery(), { key, expiresAt }, '')).toBe('done');
  await first.close();

  const second = await open();
  for (const key of keys) expect(await second.inbox.seen(key, clock.now())).toBe('done');
  expect(await second.inbox.seen('other', clock.now())).toBeUndefined();
  clock.advance(days(7));
  for (const key of keys) expect(await second.inbox.seen(key, clock.now())).toBeUndefined();
  while ((await second.inbox.prune({ ...prune, now: clock.now() })) > 0);
  expect(await second.inbox.accept(delivery(), { key: 'k0', expiresAt: clock.now() + 1 }, '')).toBe('begun');
});

test('two processes with one store begin each delivery id only once', async () => {
  const { open, clock } = await openSmall(100);
  const openers = [await open(), await open()];
  const results = await Promise.all(
    Array.from({ length: 300 }, (_, n) =>
      openers[n % 2]!.inbox.accept(delivery(), { key: `k${n % 60}`, expiresAt: clock.now() + days(7) }, ''),
    ),
  );
  expect(results.filter((result) => result === 'begun')).toHaveLength(60);
});

test('a write that the database rejects does not affect the others of its batch', async () => {
  const { open, clock } = await openSmall(100);
  const { inbox } = await open();
  const good = Array.from({ length: 5 }, () => delivery());
  // No text where the schema wants one.
  const bad = { ...delivery(), source: null as unknown as string };
  const results = await Promise.allSettled(
    [...good.slice(0, 2), bad, ...good.slice(2)].map((each, n) =>
      inbox.accept(each, { key: `b${n}`, expiresAt: clock.now() + 1000 }, ''),
    ),
  );
  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ]);
  expect((await inbox.list('acme', { limit: 9 })).items).toHaveLength(5);
  expect(await inbox.seen('b2', clock.now())).toBeUndefined();
  expect(await inbox.accept(delivery(), { key: 'b2', expiresAt: clock.now() + 1000 }, '')).toBe('begun');
});

test('a closed inbox refuses writes with STORE_ERROR', async () => {
  const { open } = await openSmall(100);
  const { inbox, close } = await open();
  await close();
  await expect(inbox.accept(delivery(), undefined, '')).rejects.toMatchObject({ code: 'STORE_ERROR' });
});

test('a claim that waits for a concurrent one lets it read the claims of other processes', async () => {
  const { open, clock } = await openSmall(100);
  // As while another process has the file locked.
  const { inbox } = await open((db) => ({
    ...db,
    read: async (query) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return db.read(query);
    },
  }));
  const remote = await open();
  const claim = { key: 'k', expiresAt: clock.now() + days(7) };
  await remote.inbox.accept(delivery(), { ...claim, key: 'another' }, '');
  const both = [inbox.accept(delivery(), claim, ''), inbox.accept(delivery(), claim, '')];
  expect(await Promise.all(both)).toEqual(['begun', 'done']);
});

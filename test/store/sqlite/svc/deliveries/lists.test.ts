import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { DeliveryStatus } from '../../../../../src/contracts/index.ts';
import { silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../../../src/kit/time/clock.ts';
import { days } from '../../../../../src/kit/time/duration.ts';
import type {
  DeliveryCursor,
  DeliveryFilter,
  DeliveryRecord,
  WebhookInbox,
} from '../../../../../src/store/ports/index.ts';
import { openDatabase, sqliteGatewayStore } from '../../../../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../../../../src/store/sqlite/svc/schema.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery, SUCCEEDED } from '../../../../support/new-delivery.ts';

/** The schema before there were lists. */
const UNLISTED_SCHEMA = 7;
const BEGIN = 1_700_000_000_000;

async function openStore(dataDir: string, options: { shared?: boolean; recovers?: boolean } = {}) {
  const store = await sqliteGatewayStore({ dataDir, clock: manualClock(), logger: silentLogger, ...options });
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= store.close());
  onTestFinished(close);
  return { inbox: store.inbox, close };
}

/** A database of `count` deliveries of two plugins, of which every thousandth failed. */
async function filled(schema: number, count: number): Promise<string> {
  const dataDir = await tempDir();
  const file = join(dataDir, 'svc.db');
  const made = await openDatabase({ file, migrations: GATEWAY_MIGRATIONS.slice(0, schema) });
  await made.write(() =>
    made
      .prepare(`insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
        trace_id, mode, origin, status, attempts, steps, body_bytes, body)
       with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})
       select randomblob(16), iif(i % 2 = 0, 'acme', 'other'), iif(i % 10 = 0, 'rare', 'usual'), 'e' || (i % 4), '',
         ${BEGIN} + i - 3 * (i % 5), '::1', 'r', 't', 'sync', 'sender', iif(i % 1000 = 0, 'failed', 'succeeded'), 1, '', 9,
         cast('body ' || i as blob) from n`)
      .run(),
  );
  await made.close();
  return dataDir;
}

/** All pages; every one but the last must be full. */
async function pagesOf(inbox: WebhookInbox, filter: DeliveryFilter, limit = 50): Promise<DeliveryRecord[]> {
  const found: DeliveryRecord[] = [];
  for (let before: DeliveryCursor | undefined; ; ) {
    const { items, next } = await inbox.list('acme', { ...filter, limit, before });
    found.push(...items);
    if (next === null) return found;
    expect(items).toHaveLength(limit);
    before = next;
  }
}

const isNewestFirst = (items: readonly DeliveryCursor[]): boolean =>
  items.every((item, n) => {
    const former = items[n - 1];
    if (!former) return true;
    return (
      former.receivedAt > item.receivedAt ||
      (former.receivedAt === item.receivedAt && former.position > item.position)
    );
  });

const FILTERS: Array<[string, DeliveryFilter, number]> = [
  ['nothing', {}, 2000],
  ['a status', { status: ['failed'] }, 4],
  ['two statuses', { status: ['failed', 'succeeded'] }, 2000],
  ['a plugin', { pluginId: 'rare' }, 400],
  ['an event', { event: 'e2' }, 1000],
  ['plugin and event', { pluginId: 'rare', event: 'e2' }, 200],
  ['plugin, event and status', { pluginId: 'rare', event: 'e0', status: ['failed'] }, 4],
  ['a time', { since: BEGIN + 3900 }, 48],
  ['a text', { search: 'body 1234' }, 1],
  ['a text and a status', { search: 'body', status: ['failed'] }, 4],
  ['no delivery', { status: ['dead'] }, 0],
];

test.each([
  ['once all are listed', {}],
  ['before those of a former version are listed', { shared: true, recovers: false }],
])('%s, pages of every filter are full, in order and complete', async (_when, options) => {
  const dataDir = await filled(UNLISTED_SCHEMA, 4000);
  const { inbox } = await openStore(dataDir, options);
  if (!('recovers' in options)) await inbox.list('acme', { limit: 1, after: { receivedAt: 0, position: 0 } });
  for (const [name, filter, count] of FILTERS) {
    const found = await pagesOf(inbox, filter);
    expect([name, found.length, new Set(found.map(({ position }) => position)).size]).toEqual([
      name,
      count,
      count,
    ]);
    expect(isNewestFirst(found)).toBe(true);
  }
});

test('deliveries of a burst are listed by the time of their receipt, whenever they were written', async () => {
  const { inbox } = await openStore(await tempDir(), { shared: false });
  const made = Array.from({ length: 60 }, (_, n) => delivery({ receivedAt: BEGIN + ((n * 37) % 60) }));
  for (const [n, each] of made.entries()) {
    if (n % 3 === 0) inbox.note(each, { ...SUCCEEDED, status: 'refused' });
    else await inbox.accept(each, undefined, '');
  }
  const found = await pagesOf(inbox, {}, 7);
  expect(found).toHaveLength(60);
  expect(isNewestFirst(found)).toBe(true);
  const oldest = await inbox.list('acme', { limit: 99, after: { receivedAt: 0, position: 0 } });
  expect(oldest.items.reverse().map(({ webhookId }) => webhookId)).toEqual(
    found.map(({ webhookId }) => webhookId),
  );
});

test('a delivery is listed by its current status, and not after its deletion', async () => {
  const { inbox } = await openStore(await tempDir(), { shared: false });
  const one = delivery({ body: Buffer.from('kept'), receivedAt: BEGIN });
  const listed = async (status: DeliveryStatus) =>
    (await inbox.list('acme', { limit: 9, status: [status] })).items.length;
  await inbox.accept(one, undefined, '');
  expect([await listed('accepted'), await listed('succeeded')]).toEqual([1, 0]);
  await inbox.finish(one.webhookId, SUCCEEDED);
  expect([await listed('accepted'), await listed('succeeded')]).toEqual([0, 1]);
  expect(await inbox.shrink({ maxBytes: 0, limit: 1 })).toBe(1);
  expect([await listed('accepted'), await listed('succeeded')]).toEqual([0, 1]);
  expect((await inbox.list('acme', { limit: 9 })).items).toHaveLength(1);
  await inbox.prune({ receivedBefore: BEGIN + 1, now: BEGIN + 1, limit: 9 });
  expect([await listed('succeeded'), (await inbox.list('acme', { limit: 9 })).items.length]).toEqual([0, 0]);
});

test('markers of a large store are known from the start, and those of a dead process are released', async () => {
  const dataDir = await tempDir();
  const expiresAt = manualClock().now() + days(7);
  const first = await openStore(dataDir, { shared: false });
  const keys = Array.from({ length: 6000 }, (_, n) => `k${n}`);
  await Promise.all(
    keys.map((key, n) =>
      n % 1000 === 0
        ? first.inbox.begin(delivery(), { key, expiresAt })
        : first.inbox.accept(delivery(), { key, expiresAt }, ''),
    ),
  );
  await first.close();

  const { inbox } = await openStore(dataDir, { shared: false });
  const now = manualClock().now();
  expect(await inbox.interrupt()).toBe(6);
  const states = await Promise.all(keys.map((key) => inbox.seen(key, now)));
  expect(states.filter((state) => state === 'done')).toHaveLength(5994);
  expect(states.filter((state) => state === undefined)).toHaveLength(6);
  expect(await inbox.accept(delivery(), { key: 'k5999', expiresAt }, '')).toBe('done');
  expect(await inbox.begin(delivery(), { key: 'k1000', expiresAt })).toBe('begun');
  expect(await inbox.seen('k1000', now)).toBe('pending');
  expect(await inbox.accept(delivery(), { key: 'new', expiresAt }, '')).toBe('begun');
});

test('rows whose bodies were deleted before a restart are not scanned again', async () => {
  const dataDir = await tempDir();
  const first = await openStore(dataDir, { shared: false });
  const made = Array.from({ length: 8 }, () => delivery({ body: Buffer.alloc(2000, 1) }));
  for (const each of made) {
    await first.inbox.accept(each, undefined, '');
    if (each !== made[2]) await first.inbox.finish(each.webhookId, SUCCEEDED);
  }
  expect(await first.inbox.shrink({ maxBytes: 0, limit: 4 })).toBe(4);
  await first.close();
  const db = new Sqlite(join(dataDir, 'svc.db'));
  expect(db.prepare('select bodiless_until from delivery_progress').pluck().get()).toBe(5);
  db.close();

  const { inbox } = await openStore(dataDir, { shared: false });
  expect(await inbox.shrink({ maxBytes: 0, limit: 2 })).toBe(2);
  await inbox.finish(made[2]!.webhookId, SUCCEEDED);
  expect(await inbox.shrink({ maxBytes: 0, limit: 1 })).toBe(1);
  // What had not ended when its place was passed.
  expect(await inbox.shrink({ maxBytes: 0, limit: 1 })).toBe(1);
  const left = await Promise.all(made.map(({ webhookId }) => inbox.find(webhookId)));
  expect(left.every((record) => record?.body === null)).toBe(true);
});

test('unfinished deliveries with large bodies are read in order and completely, a megabyte per turn', async () => {
  const { inbox } = await openStore(await tempDir(), { shared: false });
  const made = Array.from({ length: 7 }, () => delivery({ body: Buffer.alloc(700_000, 1) }));
  for (const each of made) await inbox.accept(each, undefined, '');
  expect((await inbox.unfinished(200)).map(({ webhookId }) => webhookId)).toEqual(
    made.map(({ webhookId }) => webhookId),
  );
});

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../../../src/kit/time/clock.ts';
import type { DeliveryCursor, DeliveryFilter, WebhookInbox } from '../../../../../src/store/ports/index.ts';
import { openDatabase, sqliteGatewayStore } from '../../../../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../../../../src/store/sqlite/svc/schema.ts';
import {
  decodeDocs,
  encodeDocs,
  SEGMENT_DOCS,
  trigramsOf,
} from '../../../../../src/store/sqlite/svc/text-index/buckets.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery, SUCCEEDED } from '../../../../support/new-delivery.ts';

const BEGIN = 1_700_000_000_000;
const COUNT = 5000;

/** Deliveries of two namespaces, received in another order than they were written. */
async function filled(): Promise<string> {
  const dataDir = await tempDir();
  const made = await openDatabase({ file: join(dataDir, 'svc.db'), migrations: GATEWAY_MIGRATIONS });
  await made.write(() =>
    made
      .prepare(`insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
        trace_id, mode, origin, status, attempts, steps, outcome, body_bytes, body, headers)
       with recursive n (i) as (select 1 union all select i + 1 from n where i < ${COUNT})
       select randomblob(16), iif(i % 5 = 0, 'other', 'acme'), 'p', 'e' || (i % 4), '', ${BEGIN} + i - 7 * (i % 9), '::1',
         'req-' || i, 'trace-' || (i / 2), 'async', 'sender', case when i % 500 = 3 then 'accepted' when i % 7 = 0 then 'failed' else 'succeeded' end,
         1, '', '{"why":"out-' || (i % 13) || '"}', 30, cast('{"order":"ord_' || i || '"}' as blob),
         '[[":path","/hidden"],["x-github-event","kind-' || (i % 900) || '"],["x-key","[masked]"]]' from n`)
      .run(),
  );
  await made.close();
  return dataDir;
}

async function open(dataDir: string): Promise<{ inbox: WebhookInbox; close(): Promise<void> }> {
  const store = await sqliteGatewayStore({
    dataDir,
    clock: manualClock(),
    logger: silentLogger,
    shared: false,
  });
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= store.close());
  onTestFinished(close);
  return { inbox: store.inbox, close };
}

async function segmentsOf(dataDir: string): Promise<Array<{ hasOpen: number; hasBodies: number }>> {
  const file = join(dataDir, 'search.db');
  if (!existsSync(file)) return [];
  const db = new Sqlite(file, { readonly: true });
  try {
    return db
      .prepare<[], { hasOpen: number; hasBodies: number }>(
        'select has_open as hasOpen, has_bodies as hasBodies from segment order by first',
      )
      .all();
  } catch {
    return [];
  } finally {
    db.close();
  }
}

const indexed = (dataDir: string, count: number) =>
  expect.poll(async () => (await segmentsOf(dataDir)).length, { timeout: 60_000 }).toBe(count);

async function found(inbox: WebhookInbox, filter: DeliveryFilter): Promise<string[]> {
  const ids: string[] = [];
  for (let before: DeliveryCursor | undefined; ; ) {
    const { items, next } = await inbox.list('acme', { ...filter, limit: 40, before });
    ids.push(...items.map(({ position }) => String(position)));
    if (next === null) return ids;
    expect(items).toHaveLength(40);
    before = next;
  }
}

const SEARCHES: DeliveryFilter[] = [
  { search: 'ord_1234' },
  { search: '"ord_4999"' },
  { search: 'out-12' },
  { search: 'req-77' },
  { search: 'ord' },
  { search: 'ord_12', event: 'e2', status: ['failed'] },
  { search: 'out-', status: ['accepted'] },
  { search: 'ord_', since: BEGIN + 4500 },
  { search: 'x-github-event: kind-877' },
  { search: 'x-key', event: 'e1', since: BEGIN + 4900 },
  { search: '[masked]' },
  { search: '/hidden' },
  { search: 'nowhere' },
  { search: '99' },
];

test('a search gives the same result with and without the index, for all other filters', {
  timeout: 120_000,
}, async () => {
  const dataDir = await filled();
  const { inbox } = await open(dataDir);
  const scanned = await Promise.all(SEARCHES.map((filter) => found(inbox, filter)));
  expect(scanned[0]).toEqual(['1234']);
  const inHeaders = scanned.filter((_, n) => /x-|mask|hidden/.test(SEARCHES[n]!.search!));
  expect(inHeaders.map(({ length }) => length > 0)).toEqual([true, true, false, false]);
  await indexed(dataDir, Math.floor(COUNT / SEGMENT_DOCS));
  for (const [n, filter] of SEARCHES.entries())
    expect([filter, await found(inbox, filter)]).toEqual([filter, scanned[n]]);
});

test('the deliveries of a trace are found with and without the index', async () => {
  const dataDir = await filled();
  const { inbox } = await open(dataDir);
  const positions = async (trace: string) =>
    (await inbox.ofTrace('acme', trace, 9)).map(({ position }) => position);
  const wanted: Array<[string, number[]]> = [
    ['trace-1', [3, 2]],
    // Every fifth delivery belongs to another namespace.
    ['trace-10', [21]],
    ['trace-1300', [2601]],
    ['trace-2499', [4999, 4998]],
    ['trace-9999', []],
  ];
  const expectFound = async () => {
    for (const [trace, found] of wanted) expect([trace, await positions(trace)]).toEqual([trace, found]);
  };
  await expectFound();
  await indexed(dataDir, 2);
  await expectFound();
});

test('a search finds the outcome of deliveries that ended after they were indexed, and new deliveries', {
  timeout: 120_000,
}, async () => {
  const dataDir = await filled();
  const { inbox } = await open(dataDir);
  await indexed(dataDir, 2);
  const waiting = (await inbox.list('acme', { limit: 1, status: ['accepted'], search: 'ord_1003' }))
    .items[0]!;
  await inbox.finish(waiting.webhookId, { ...SUCCEEDED, outcome: '{"note":"came late"}' });
  await inbox.accept(delivery({ body: Buffer.from('{"order":"brand-new"}') }), undefined, '');
  expect(await found(inbox, { search: 'came late' })).toEqual([String(waiting.position)]);
  expect(await found(inbox, { search: 'brand-new' })).toHaveLength(1);
  expect(await found(inbox, { search: 'ord_1003', status: ['succeeded'] })).toHaveLength(1);
});

test('an index is rebuilt if it is damaged or newer than its restored database', {
  timeout: 120_000,
}, async () => {
  const dataDir = await filled();
  const first = await open(dataDir);
  await indexed(dataDir, 2);
  await first.close();
  const db = new Sqlite(join(dataDir, 'search.db'));
  db.exec('update progress set indexed_until = 1000000');
  db.close();
  const second = await open(dataDir);
  expect(existsSync(join(dataDir, 'search.db'))).toBe(false);
  expect(await found(second.inbox, { search: 'ord_1234' })).toEqual(['1234']);
  await second.close();
  writeFileSync(
    join(dataDir, 'search.db'),
    'no database at all, but as long as the header of one would be'.repeat(9),
  );
  const third = await open(dataDir);
  expect(await found(third.inbox, { search: 'ord_1234' })).toEqual(['1234']);
  await indexed(dataDir, 2);
  expect(await found(third.inbox, { search: 'ord_1234' })).toEqual(['1234']);
});

const usedBytes = (dataDir: string, name: string): number => {
  const db = new Sqlite(join(dataDir, name), { readonly: true });
  const value = (pragma: string) => db.pragma(pragma, { simple: true }) as number;
  const used = (value('page_count') - value('freelist_count')) * value('page_size');
  db.close();
  return used;
};

test('retention counts the size of the index without segments of deleted bodies', {
  timeout: 120_000,
}, async () => {
  const dataDir = await filled();
  const first = await open(dataDir);
  await indexed(dataDir, 2);
  await first.close();
  const [rows, index] = ['svc.db', 'search.db'].map((name) => usedBytes(dataDir, name)) as [number, number];
  expect(index).toBeGreaterThan(100_000);
  const { inbox } = await open(dataDir);
  expect(await inbox.shrink({ maxBytes: rows + index, limit: 10 })).toBe(0);
  const maxBytes = rows + Math.floor(index * 0.75);
  while ((await inbox.shrink({ maxBytes, limit: 100 })) > 0);
  const kept = (await found(inbox, {})).length;
  expect(kept).toBe(COUNT * 0.8);
  const db = new Sqlite(join(dataDir, 'svc.db'), { readonly: true });
  const bodiless = db.prepare('select count(*) from delivery where body is null').pluck().get() as number;
  db.close();
  // The first segment's bodies make up for it; those of the second stay.
  expect(bodiless).toBeGreaterThan(0);
  expect(bodiless).toBeLessThanOrEqual(SEGMENT_DOCS + 200);
});

test('any number of deliveries in a bucket is decoded as it was encoded', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(SEGMENT_DOCS - 1), { maxLength: SEGMENT_DOCS }), (docs) => {
      const bitmap = decodeDocs(encodeDocs(Uint32Array.from(docs)));
      const read = [...Array(SEGMENT_DOCS).keys()].filter((doc) => (bitmap[doc >> 3]! >> (doc & 7)) & 1);
      expect(read).toEqual(docs.toSorted((a, b) => a - b));
    }),
    { numRuns: 50 },
  );
  expect(trigramsOf('ab')).toEqual([]);
  expect(trigramsOf('aaaa')).toHaveLength(1);
});

import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../../../src/kit/time/clock.ts';
import { minutes } from '../../../../../src/kit/time/duration.ts';
import { type Database, openDatabase } from '../../../../../src/store/sqlite/index.ts';
import { deliveryRows } from '../../../../../src/store/sqlite/svc/deliveries/rows.ts';
import { GATEWAY_MIGRATIONS } from '../../../../../src/store/sqlite/svc/schema.ts';
import { sqliteWebhookInbox } from '../../../../../src/store/sqlite/svc/webhook-inbox.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { SUCCEEDED } from '../../../../support/new-delivery.ts';

const BEGIN = 1_700_000_000_000;
const WAITING = 6000;
const ENDED = 30;

/** Deliveries of a paused webhook, then some that have ended. */
async function filled(): Promise<Database> {
  const db = await openDatabase({ file: join(await tempDir(), 'svc.db'), migrations: GATEWAY_MIGRATIONS });
  onTestFinished(() => db.close());
  await db.write(() =>
    db
      .prepare(`insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
        trace_id, mode, origin, status, attempts, steps, body_bytes, body)
       with recursive n (i) as (select 1 union all select i + 1 from n where i < ${WAITING + ENDED})
       select randomblob(16), 'acme', 'p', 'e', '', ${BEGIN} + i, '::1', 'r', 't', 'async', 'sender',
         iif(i <= ${WAITING}, 'accepted', 'succeeded'), 0, '', 9, iif(i <= ${WAITING}, cast('body' as blob), null) from n`)
      .run(),
  );
  return db;
}

/** An inbox that counts the rows which pruning reads. */
async function opened() {
  const db = await filled();
  const clock = manualClock();
  const read = { rows: 0 };
  const prepare = ((source: string) => {
    const statement = db.prepare(source);
    if (!source.includes(' as waits')) return statement;
    return {
      all(...values: unknown[]) {
        const rows = statement.all(...values);
        read.rows += rows.length;
        return rows;
      },
    };
  }) as Database['prepare'];
  const inbox = await sqliteWebhookInbox({ ...db, prepare }, { clock, logger: silentLogger, shared: false });
  onTestFinished(() => inbox.close());
  const rowsReadBy = async (work: () => Promise<number>): Promise<[removed: number, rows: number]> => {
    read.rows = 0;
    return [await work(), read.rows];
  };
  return { inbox, clock, db, rowsReadBy };
}

test('a backlog of waiting deliveries is scanned once, not by each call that deletes old deliveries', async () => {
  const { inbox, clock, db, rowsReadBy } = await opened();
  const prune = () => inbox.prune({ receivedBefore: BEGIN + WAITING + 25, now: BEGIN, limit: 10 });
  expect(await rowsReadBy(prune)).toEqual([10, expect.any(Number)]);
  expect(await rowsReadBy(prune)).toEqual([10, 20]);
  // The first that is too young ends it. Those before are looked at again, as some may have ended; then not for a while.
  expect(await rowsReadBy(prune)).toEqual([4, 10]);
  await prune();
  expect(await rowsReadBy(prune)).toEqual([0, 6]);

  const id = db.prepare<[], string>('select hex(webhook_id) from delivery where position = 7').pluck().get()!;
  const webhookId = id.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  await inbox.finish(webhookId, SUCCEEDED);
  expect((await inbox.find(webhookId))?.status).toBe('succeeded');
  expect(await rowsReadBy(prune)).toEqual([0, 6]);
  clock.advance(minutes(10));
  expect((await rowsReadBy(prune))[0]).toBe(1);
  expect(await inbox.find(webhookId)).toBeUndefined();
});

test('a backlog of waiting deliveries is scanned once when space is freed', async () => {
  const { inbox, rowsReadBy } = await opened();
  const shrink = () => inbox.shrink({ maxBytes: 0, limit: 10 });
  expect(await rowsReadBy(shrink)).toEqual([10, expect.any(Number)]);
  expect(await rowsReadBy(shrink)).toEqual([10, 20]);
  expect(await rowsReadBy(shrink)).toEqual([10, 10]);
  await shrink();
  expect(await rowsReadBy(shrink)).toEqual([0, 0]);
  expect(await inbox.unfinished(10_000)).toHaveLength(WAITING);
});

test('unfinished deliveries are read within a time budget, at least one at a time', async () => {
  const db = await filled();
  const rows = deliveryRows(db);
  const positions = ({ records }: ReturnType<typeof rows.unfinished>) =>
    records.map(({ position }) => position);
  const spent = rows.unfinished(50, 3, { ms: 0, bytes: 1e6 });
  expect([positions(spent), spent.isAll]).toEqual([[4], false]);
  const small = rows.unfinished(50, 3, { ms: 60_000, bytes: 9 * 5 });
  expect([positions(small), small.isAll]).toEqual([[4, 5, 6, 7, 8], false]);
  const last = rows.unfinished(50, WAITING - 2, { ms: 60_000, bytes: 1e6 });
  expect([positions(last), last.isAll]).toEqual([[WAITING - 1, WAITING], true]);
});

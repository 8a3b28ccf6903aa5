import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import { type Database, openDatabase } from '../../database.ts';
import { lowerThreadPriority } from '../../thread-priority.ts';
import { IS_OPEN } from '../deliveries/statements.ts';
import { SEGMENT_DOCS } from './buckets.ts';
import { type BuiltSegment, segmentBuilder } from './build.ts';
import type { TextIndexStart } from './protocol.ts';
import { TEXT_INDEX_FILE, TEXT_INDEX_MIGRATIONS } from './schema.ts';

/**
 * Entry point of the worker that indexes deliveries. The worker adds full segments, rebuilds outdated segments, and
 * then ends.
 */

/**
 * Estimated bytes that a posting takes in addition to its encoded deliveries: its key and its share of page overhead.
 */
const POSTING_BYTES = 12;
const { dataDir, stop } = workerData as TextIndexStart;
const isStopped = (): boolean => Atomics.load(stop, 0) !== 0;

async function openIndex(): Promise<Database> {
  const file = join(dataDir, TEXT_INDEX_FILE);
  const open = () => openDatabase({ file, migrations: TEXT_INDEX_MIGRATIONS, losable: true });
  try {
    return await open();
  } catch {
    // A damaged file or a file with a newer schema is deleted. The index is then rebuilt from `svc.db`.
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
    return open();
  }
}

function writer(db: Database) {
  const insert = db.prepare<[number, number, number, number, Buffer, number, number]>(
    'insert into segment (first, last, newest_at, oldest_at, places, has_open, has_bodies) values (?, ?, ?, ?, ?, ?, ?)',
  );
  const noteBytes = db.prepare<[number, number | bigint]>('update segment set bytes = ? where id = ?');
  const insertPosting = db.prepare<[number | bigint, number, Buffer]>('insert into posting values (?, ?, ?)');
  const dropPostings = db.prepare<[number]>('delete from posting where segment = ?');
  const drop = db.prepare<[number]>('delete from segment where id = ?');
  const advance = db.prepare<[number]>('update progress set indexed_until = max(indexed_until, ?)');
  return {
    add: (segment: BuiltSegment, replaced?: number) =>
      db.write(() => {
        if (replaced !== undefined) {
          dropPostings.run(replaced);
          drop.run(replaced);
        }
        const { first, last, newestAt, oldestAt, places, hasOpen, hasBodies } = segment;
        const { lastInsertRowid } = insert.run(first, last, newestAt, oldestAt, places, hasOpen, hasBodies);
        let bytes = places.byteLength;
        for (const [bucket, docs] of segment.postings()) {
          insertPosting.run(lastInsertRowid, bucket, docs);
          bytes += docs.byteLength + POSTING_BYTES;
        }
        noteBytes.run(bytes, lastInsertRowid);
        advance.run(last);
      }),
    drop: (id: number) =>
      db.write(() => {
        dropPostings.run(id);
        drop.run(id);
      }),
  };
}

async function run(inbox: Sqlite.Database, db: Database): Promise<void> {
  const builder = segmentBuilder(inbox, isStopped);
  const { add, drop } = writer(db);
  const until = db.prepare<[], number>('select indexed_until from progress').pluck();
  const isFull = inbox.prepare<[number]>(
    `select 1 from delivery where position > ? order by position limit 1 offset ${SEGMENT_DOCS - 1}`,
  );
  type Segment = { id: number; first: number; last: number; hasOpen: number; hasBodies: number };
  const segments = db.prepare<[], Segment>(
    'select id, first, last, has_open as hasOpen, has_bodies as hasBodies from segment order by first',
  );
  const anyLeft = inbox.prepare<[number, number]>(
    'select 1 from delivery where position between ? and ? limit 1',
  );
  const anyOpen = inbox.prepare<[number, number]>(
    `select 1 from delivery where ${IS_OPEN} and position between ? and ? limit 1`,
  );
  const bodiless = inbox.prepare<[], number>('select bodiless_until from delivery_progress').pluck();

  while (!isStopped() && isFull.get(until.get()!)) {
    const segment = builder.build(until.get()!, Number.MAX_SAFE_INTEGER);
    if (segment) await add(segment);
    await turn();
  }
  for (const { id, first, last, hasOpen, hasBodies } of segments.all()) {
    if (isStopped()) return;
    if (!anyLeft.get(first, last)) await drop(id);
    else if ((hasOpen && !anyOpen.get(first, last)) || (hasBodies && last <= bodiless.get()!)) {
      const segment = builder.build(first - 1, last);
      if (segment) await add(segment, id);
    } else continue;
    await turn();
  }
}

lowerThreadPriority();
const inbox = new Sqlite(join(dataDir, 'svc.db'), { readonly: true, timeout: 5000 });
const db = await openIndex();
try {
  await run(inbox, db);
} finally {
  inbox.close();
  await db.close();
}

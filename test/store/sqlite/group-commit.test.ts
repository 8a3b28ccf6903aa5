import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { createGroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { type Database, openDatabase } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

const MIGRATIONS = ['create table line (id integer primary key, text text unique not null, filler blob)'];

async function openLines() {
  const file = join(await tempDir(), 'lines.db');
  const db = await openDatabase({ file, migrations: MIGRATIONS, busyTimeoutMs: 2000 });
  onTestFinished(() => db.close());
  return { db, file, ...linesOf(db) };
}

function linesOf(db: Database) {
  const insert = db.prepare<[string, number]>('insert into line (text, filler) values (?, zeroblob(?))');
  const remove = db.prepare<[string]>('delete from line where text = ?');
  const all = db.prepare<[], string>('select text from line order by id').pluck();
  return {
    add: (text: string, fillerBytes = 0) => db.write(() => insert.run(text, fillerBytes)),
    remove: (text: string) => db.write(() => remove.run(text)),
    all: () => db.read(() => all.all()),
  };
}

/** A connection beside ours, as another process has it. */
function neighbour(file: string): Sqlite.Database {
  const other = new Sqlite(file, { timeout: 0 });
  onTestFinished(() => {
    other.close();
  });
  return other;
}

test('writes of one event-loop turn share a transaction in their order', async () => {
  const statements: string[] = [];
  const sqlite = new Sqlite(':memory:', { verbose: (sql) => statements.push(String(sql)) });
  sqlite.exec(MIGRATIONS[0]!);
  const insert = sqlite.prepare<[string]>('insert into line (text) values (?)');
  const { write } = createGroupCommit(sqlite, 1000);
  const ran: string[] = [];
  const add = (text: string) => write(() => ran.push(text) && insert.run(text));

  statements.length = 0;
  await Promise.all(['a', 'b', 'c'].map(add));
  expect(statements.filter((sql) => /^(begin|commit)/.test(sql))).toEqual(['begin immediate', 'commit']);
  await add('d');
  expect(statements.filter((sql) => sql === 'commit')).toHaveLength(2);
  expect(ran).toEqual(['a', 'b', 'c', 'd']);

  // A failure in their midst costs the others a second run, not a commit each.
  statements.length = 0;
  const results = await Promise.allSettled(['e', 'a', 'f', 'g'].map(add));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(statements.filter((sql) => sql === 'commit')).toHaveLength(1);
});

test('with a separate sync, a commit settles after the sync while the next batch is collected', async () => {
  const sqlite = new Sqlite(':memory:');
  sqlite.exec(MIGRATIONS[0]!);
  const insert = sqlite.prepare<[string]>('insert into line (text) values (?)');
  const syncs: Array<() => void> = [];
  const { write, synced } = createGroupCommit(
    sqlite,
    1000,
    () => new Promise((resolve) => syncs.push(resolve)),
  );
  const settled: string[] = [];
  const add = (text: string) => write(() => insert.run(text)).then(() => settled.push(text));

  const first = [add('a'), add('b')];
  await expect.poll(() => syncs.length).toBe(1);
  const later = [add('c'), add('d')];
  let seen = false;
  const read = synced().then(() => {
    seen = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([settled, seen, syncs.length]).toEqual([[], false, 1]);

  syncs[0]!();
  await Promise.all([...first, read]);
  expect(settled).toEqual(['a', 'b']);
  await expect.poll(() => syncs.length).toBe(2);
  syncs[1]!();
  await Promise.all(later);
  expect(settled).toEqual(['a', 'b', 'c', 'd']);
});

test('a query that sees a commit early waits for its sync', async () => {
  const sqlite = new Sqlite(':memory:');
  sqlite.exec(MIGRATIONS[0]!);
  const insert = sqlite.prepare<[string]>('insert into line (text) values (?)');
  const all = sqlite.prepare<[], string>('select text from line').pluck();
  const { promise: onDisk, resolve: sync } = Promise.withResolvers<void>();
  const { write, synced } = createGroupCommit(sqlite, 1000, () => onDisk);
  let seen: string[] = [];
  let read = 'waits';
  const written = write(() => {
    insert.run('a');
    // Runs as soon as the commit has returned.
    queueMicrotask(() => {
      seen = all.all();
      void synced().then(() => {
        read = 'told';
      });
    });
  });
  await expect.poll(() => seen).toEqual(['a']);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(read).toBe('waits');
  sync();
  await written;
  await expect.poll(() => read).toBe('told');
});

test('a write settles when other connections can see it', async () => {
  const { add, file } = await openLines();
  const count = neighbour(file).prepare<[], number>('select count(*) from line').pluck();
  const before = add('x');
  expect(count.get()).toBe(0);
  await before;
  expect(count.get()).toBe(1);
});

test('a failing write is rolled back alone, and the changes of others are kept', async () => {
  const { db, add, all } = await openLines();
  const insert = db.prepare<[string]>('insert into line (text) values (?)');
  const results = await Promise.allSettled([
    add('a'),
    db.write(() => {
      insert.run('half');
      throw new Error('second thoughts');
    }),
    add('a'),
    add('b'),
    db.write(() => 'the value'),
  ]);
  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
    'fulfilled',
  ]);
  expect(results[1]).toMatchObject({ reason: { message: 'second thoughts' } });
  expect(results[2]).toMatchObject({ reason: { code: 'SQLITE_CONSTRAINT_UNIQUE' } });
  expect(results[4]).toMatchObject({ value: 'the value' });
  expect(await all()).toEqual(['a', 'b']);
});

test('a failing write does not affect later ones', async () => {
  const { db, add, all } = await openLines();
  await expect(
    db.write(() => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  await add('a');
  expect(await all()).toEqual(['a']);
});

test('a write that is added while another settles is not lost', async () => {
  const { add, all } = await openLines();
  await add('a')
    .then(() => add('b'))
    .then(() => Promise.all([add('c'), add('d')]));
  expect(await all()).toEqual(['a', 'b', 'c', 'd']);
});

test('thousands of concurrent writes are all stored', async () => {
  const { add, all } = await openLines();
  await Promise.all(Array.from({ length: 3000 }, (_, i) => add(`${i}`)));
  expect(await all()).toHaveLength(3000);
});

test("waits for another process's transaction without stopping the event loop", async () => {
  const { add, all, file } = await openLines();
  const other = neighbour(file);
  other.exec('begin immediate');
  let turns = 0;
  const counting = setInterval(() => turns++, 5);
  const written = Promise.all([add('a'), add('b')]);
  await new Promise((wake) => setTimeout(wake, 400));
  expect(await all()).toEqual([]);
  other.exec('commit');
  await written;
  clearInterval(counting);
  // Blocked throughout, it would have turned once or twice.
  expect(turns).toBeGreaterThan(5);
  expect(await all()).toEqual(['a', 'b']);
});

test('a lock that stays makes writes fail with an explanation, and later writes succeed', async () => {
  const { add, all, file } = await openLines();
  const other = neighbour(file);
  other.exec('begin immediate');
  const results = await Promise.allSettled([add('a'), add('b')]);
  for (const result of results) {
    expect(result).toMatchObject({
      status: 'rejected',
      reason: { code: 'STORE_ERROR', details: { file, reason: 'SQLITE_BUSY' } },
    });
  }
  other.exec('rollback');
  await add('c');
  expect(await all()).toEqual(['c']);
});

test('on a full disk, only writes that do not fit fail, and the error names the file', async () => {
  const { db, add, remove, all, file } = await openLines();
  await add('first', 50_000);
  await add('second');
  const pages = db.pragma('page_count') as [{ page_count: number }];
  db.pragma(`max_page_count = ${pages[0].page_count + 10}`);

  const results = await Promise.allSettled([
    add('small'),
    add('large', 500_000),
    remove('second'),
    add('larger', 900_000),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
  expect(results[1]).toMatchObject({
    reason: { code: 'STORE_ERROR', details: { file, reason: 'SQLITE_FULL' } },
  });
  expect((results[1] as PromiseRejectedResult).reason.message).toContain(file);
  expect(await all()).toEqual(['first', 'small']);

  await expect(add('alone', 500_000)).rejects.toMatchObject({ code: 'STORE_ERROR' });
  await remove('first');
  await add('fits again', 30_000);
  db.pragma('max_page_count = 100000');
  await add('large', 500_000);
  expect(neighbour(file).prepare('select text from line order by id').pluck().all()).toEqual([
    'small',
    'fits again',
    'large',
  ]);
});

test('close commits queued writes, and later writes and reads are rejected', async () => {
  const { db, add, all, file } = await openLines();
  const queued = Promise.all([add('a'), add('b')]);
  const closed = db.close();
  await expect(add('late')).rejects.toMatchObject({
    code: 'STORE_ERROR',
    message: expect.stringContaining(file),
  });
  await expect(all()).rejects.toMatchObject({ code: 'STORE_ERROR' });
  await Promise.all([queued, closed, db.close()]);
  expect(neighbour(file).prepare('select text from line order by id').pluck().all()).toEqual(['a', 'b']);
});

import { chmod, mkdir, open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { type DatabaseOptions, openDatabase } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

const FIRST = 'create table note (id integer primary key, text text)';
const SECOND = `alter table note add column at integer; create index note_at on note (at)`;

async function opened(options: DatabaseOptions) {
  const db = await openDatabase(options);
  onTestFinished(() => db.close());
  return db;
}

async function newFile(): Promise<string> {
  return join(await tempDir(), 'data', 'notes.db');
}

/** A closed file of some 40 pages. */
async function filledFile(): Promise<string> {
  const file = await newFile();
  const db = await openDatabase({ file, migrations: [FIRST] });
  const insert = db.prepare('insert into note (text) values (?)');
  await Promise.all(Array.from({ length: 400 }, (_, i) => db.write(() => insert.run(`${i}`.repeat(150)))));
  await db.close();
  return file;
}

/** The STORE_ERROR that opening ends with. */
async function refusal(options: DatabaseOptions): Promise<PlatformError> {
  const error = await openDatabase(options).then(
    (db) => db.close().then(() => 'it opened'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(PlatformError);
  expect(error).toMatchObject({ code: 'STORE_ERROR', message: expect.stringContaining(options.file) });
  return error as PlatformError;
}

test('creates a private file in a private folder, durable and strict', async () => {
  const file = await newFile();
  const db = await opened({ file, migrations: [FIRST] });
  await db.write(() => db.prepare('insert into note (text) values (1)').run());
  expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700);
  for (const part of ['', '-wal', '-shm']) expect((await stat(file + part)).mode & 0o777, part).toBe(0o600);
  expect(db.pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }]);
  expect(db.pragma('synchronous')).toEqual([{ synchronous: 2 }]);
  expect(db.pragma('foreign_keys')).toEqual([{ foreign_keys: 1 }]);
});

test('tightens a file that others could read, and leaves an existing folder alone', async () => {
  const file = await filledFile();
  await chmod(file, 0o644);
  await chmod(join(file, '..'), 0o755);
  await opened({ file, migrations: [FIRST] });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o755);
});

test('migrates step by step and keeps the data', async () => {
  const file = await filledFile();
  const db = await opened({ file, migrations: [FIRST, SECOND] });
  expect(db.pragma('user_version')).toEqual([{ user_version: 2 }]);
  expect(await db.read(() => db.prepare('select count(*), count(at) from note').raw().get())).toEqual([
    400, 0,
  ]);
});

test('a failed migration step leaves the schema of the previous step', async () => {
  const file = await newFile();
  const broken = [FIRST, `${SECOND}; insert into nowhere values (1)`];
  await expect(openDatabase({ file, migrations: broken })).rejects.toThrow('nowhere');
  const db = await opened({ file, migrations: [FIRST] });
  expect(await db.read(() => db.prepare('select * from note').all())).toEqual([]);
});

test('several processes may open and create one file at once', async () => {
  const file = await newFile();
  const all = await Promise.all(
    Array.from({ length: 5 }, () => opened({ file, migrations: [FIRST, SECOND] })),
  );
  await Promise.all(
    all.map((db, i) => db.write(() => db.prepare('insert into note (id) values (?)').run(i))),
  );
  expect(await all[0]!.read(() => all[0]!.prepare('select count(*) from note').pluck().get())).toBe(5);
});

test('refuses the schema of a newer version and does not touch the file', async () => {
  const file = await newFile();
  await (await openDatabase({ file, migrations: [FIRST, SECOND] })).close();
  const before = await readFile(file);
  const { message } = await refusal({ file, migrations: [FIRST] });
  expect(message).toMatch(/newer version of svc \(schema 2; this one knows 1\).*Install/);
  expect(await readFile(file)).toEqual(before);
});

test("refuses another program's database and does not touch the file", async () => {
  const file = join(await tempDir(), 'notes.db');
  new Sqlite(file).exec('create table theirs (id)').close();
  const before = await readFile(file);
  expect((await refusal({ file, migrations: [FIRST] })).message).toContain('another program');
  expect(await readFile(file)).toEqual(before);
});

test('refuses a file that is no database', async () => {
  const file = join(await tempDir(), 'notes.db');
  await writeFile(file, 'Dear diary, '.repeat(1000));
  expect((await refusal({ file, migrations: [FIRST] })).message).toMatch(/not a database.*svc restore/);
});

test('refuses a file whose first page is damaged, and one that was cut short', async () => {
  const damaged = await filledFile();
  await overwrite(damaged, 100, 3000);
  expect((await refusal({ file: damaged, migrations: [FIRST] })).message).toMatch(/damaged.*svc restore/);

  const cut = await filledFile();
  await truncate(cut, 8192 + 100);
  expect((await refusal({ file: cut, migrations: [FIRST] })).message).toMatch(/damaged.*svc restore/);
});

test('damage inside the file is reported by the read or write that meets it', async () => {
  const file = await filledFile();
  await overwrite(file, 4096, 4096 * 30);
  const db = await opened({ file, migrations: [FIRST] });
  const damaged = { code: 'STORE_ERROR', message: expect.stringContaining(`${file} is damaged`) };
  await expect(db.read(() => db.prepare('select * from note').all())).rejects.toMatchObject(damaged);
  await expect(db.write(() => db.prepare("update note set text = 'x'").run())).rejects.toMatchObject(damaged);
});

async function overwrite(file: string, from: number, bytes: number): Promise<void> {
  const handle = await open(file, 'r+');
  await handle.write(Buffer.alloc(bytes, 0xa5), 0, bytes, from);
  await handle.close();
}

test('a folder that cannot be created is named in the error', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'plain'), '');
  const inFile = { file: join(folder, 'plain', 'notes.db'), migrations: [FIRST] };
  expect((await refusal(inFile)).message).toContain('Its folder must exist');
  await mkdir(join(folder, 'notes.db'));
  expect((await refusal({ file: join(folder, 'notes.db'), migrations: [FIRST] })).message).toContain(
    'cannot be opened',
  );
});

test('a read-only file is rejected when it is opened, not at its first write', async () => {
  const file = await filledFile();
  const folder = join(file, '..');
  await chmod(join(folder, '..'), 0o755);
  await chmod(file, 0o444);
  await chmod(folder, 0o555);
  await asNobody(async () => {
    expect((await refusal({ file, migrations: [FIRST] })).message).toMatch(/cannot be (written|opened)/);
    expect((await refusal({ file: join(folder, 'new.db'), migrations: [FIRST] })).message).toContain(
      'cannot be written',
    );
  });
  await chmod(folder, 0o755);
});

// Only for root's files: one's own would simply be made writable again.
test.runIf(process.getuid?.() === 0)(
  "another user's file in a folder of one's own is refused at once too",
  async () => {
    const file = await filledFile();
    const folder = join(file, '..');
    await chmod(join(folder, '..'), 0o755);
    await chmod(file, 0o444);
    await chmod(folder, 0o777);
    await asNobody(async () => {
      expect((await refusal({ file, migrations: [FIRST] })).message).toContain('cannot be written');
    });
  },
);

/** Modes mean nothing to root: for a while this process is the least of users. */
async function asNobody(run: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return run();
  process.seteuid!(65534);
  try {
    await run();
  } finally {
    process.seteuid!(0);
  }
}

test('only an existing file of the current schema can be opened read-only', async () => {
  const file = await filledFile();
  const db = await opened({ file, migrations: [FIRST], readonly: true });
  expect(await db.read(() => db.prepare('select count(*) from note').pluck().get())).toBe(400);
  await expect(db.write(() => db.prepare('delete from note').run())).rejects.toMatchObject({
    code: 'STORE_ERROR',
  });

  expect((await refusal({ file, migrations: [FIRST, SECOND], readonly: true })).message).toContain(
    'older schema',
  );
  expect((await refusal({ file: `${file}.gone`, migrations: [FIRST], readonly: true })).message).toContain(
    'cannot be opened',
  );
  await expect(stat(`${file}.gone`)).rejects.toMatchObject({ code: 'ENOENT' });
});

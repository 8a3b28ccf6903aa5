import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acquireOwnerLock } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startProgram } from './programs/start.ts';

async function dataFile(): Promise<string> {
  return join(await tempDir(), 'svc.db');
}

test('a file has one owner, whose name a second process gets', async () => {
  const file = await dataFile();
  const owner = startProgram('own', file, 'gateway');
  await owner.printed(1);
  const refused = acquireOwnerLock({ file, label: 'restore', waitMs: 0 });
  await expect(refused).rejects.toMatchObject({
    code: 'CONFLICT',
    details: { file, owner: { pid: owner.pid, label: 'gateway' } },
  });
  await expect(refused).rejects.toThrow(
    `${file} is in use by gateway (pid ${owner.pid}). Stop it with \`svc down\``,
  );
});

test('kill -9 releases the lock at once, and the stale owner file is ignored', async () => {
  const file = await dataFile();
  const owner = startProgram('own', file, 'gateway');
  await owner.printed(1);
  await owner.kill();
  expect(JSON.parse(await readFile(`${file}.owner`, 'utf8'))).toEqual({ pid: owner.pid, label: 'gateway' });
  const next = await acquireOwnerLock({ file, label: 'gateway', waitMs: 0 });
  expect(JSON.parse(await readFile(`${file}.owner`, 'utf8'))).toEqual({ pid: process.pid, label: 'gateway' });

  // As if the holder had been killed between its lock and its note.
  await writeFile(`${file}.owner`, JSON.stringify({ pid: owner.pid, label: 'gateway' }));
  await expect(acquireOwnerLock({ file, label: 'second', waitMs: 0 })).rejects.toThrow(
    'is in use by another process',
  );
  next.release();
});

test('a process waits for an owner that is shutting down for a limited time', async () => {
  const file = await dataFile();
  const owner = startProgram('own', file, 'gateway', '300');
  await owner.printed(1);
  await expect(acquireOwnerLock({ file, label: 'next', waitMs: 50 })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  const next = await acquireOwnerLock({ file, label: 'next', waitMs: 20_000 });
  next.release();
});

test('exactly one of several processes that start together gets the lock', async () => {
  const file = await dataFile();
  const racers = ['a', 'b', 'c'].map((label) => startProgram('own', file, label));
  await Promise.all(racers.map((racer) => racer.printed(1)));
  expect(racers.flatMap(({ lines }) => lines).sort()).toEqual(['CONFLICT', 'CONFLICT', 'held']);
});

test('one process cannot own a file twice, and may own it again after letting go', async () => {
  const file = await dataFile();
  const first = await acquireOwnerLock({ file, label: 'first', waitMs: 0 });
  await expect(acquireOwnerLock({ file, label: 'second', waitMs: 0 })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  first.release();
  first.release();
  await expect(stat(`${file}.owner`)).rejects.toMatchObject({ code: 'ENOENT' });
  const second = await acquireOwnerLock({ file, label: 'second', waitMs: 0 });
  first.release();
  await expect(acquireOwnerLock({ file, label: 'third', waitMs: 0 })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  second.release();
});

test('lock and note are private to their user', async () => {
  const file = await dataFile();
  const lock = await acquireOwnerLock({ file, label: 'gateway', waitMs: 0 });
  for (const part of ['.lock', '.owner']) expect((await stat(file + part)).mode & 0o777).toBe(0o600);
  lock.release();
});

test('a lock file that is something else is named', async () => {
  const file = await dataFile();
  await writeFile(`${file}.lock`, 'x'.repeat(4096));
  await expect(acquireOwnerLock({ file, label: 'gateway', waitMs: 0 })).rejects.toMatchObject({
    code: 'STORE_ERROR',
  });
  const remote = join(file, 'below', 'a', 'file');
  await writeFile(file, '');
  await expect(acquireOwnerLock({ file: remote, label: 'gateway', waitMs: 0 })).rejects.toThrow(
    `${remote}.lock cannot be opened`,
  );
});

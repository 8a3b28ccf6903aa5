import { readdirSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Logger, silentLogger } from '../../../../../src/kit/telemetry/logger.ts';
import { FRAMES_AT } from '../../../../../src/store/sqlite/svc/journal/header.ts';
import { readJournal } from '../../../../../src/store/sqlite/svc/journal/read-journal.ts';
import { tempDir } from '../../../../support/daemon.ts';
import { delivery } from '../../../../support/new-delivery.ts';
import {
  errorsInto,
  expectAll,
  journalOf,
  killedAfter,
  killedUnfiled,
  openStore,
  records,
  withUnfiled,
} from '../journalled-store.ts';
import { databaseOf, journalBytes } from './journal-bytes.ts';

test('a journal with a gap is applied up to the gap, and its files are kept', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  for (const aside of ['inbox-damaged', 'inbox-damaged-2']) {
    await killedUnfiled(dataDir, 500);
    const [name] = readdirSync(journalOf(dataDir)) as [string];
    const file = join(journalOf(dataDir), name);
    // The second half becomes a file of its own, without its first frame.
    const bytes = await readFile(file);
    const { frames } = readJournal(bytes)!;
    const middle = Math.floor(frames.length / 2);
    const rest = [bytes.subarray(0, FRAMES_AT), bytes.subarray(frames[middle]!.end)];
    await writeFile(join(journalOf(dataDir), '77.log'), Buffer.concat(rest));
    await writeFile(file, bytes.subarray(0, frames[middle - 1]!.end));

    const store = await openStore(dataDir, errorsInto(told));
    expect(told.at(-1)).toContain(`${aside}.`);
    expect(readdirSync(join(dataDir, aside)).sort()).toEqual(['77.log', name].sort());
    expect((await records(store)).size).toBeGreaterThan(0);
    expect(await store.inbox.accept(delivery(), undefined, '')).toBe('begun');
    await store.close();
  }
  expect(told).toHaveLength(2);
});

/** Changes a byte in the midst of one frame, by its place in the journal's only file. */
async function damage(dataDir: string, which: (frames: number) => number): Promise<void> {
  const [name] = readdirSync(journalOf(dataDir)) as [string];
  const file = join(journalOf(dataDir), name);
  const bytes = await readFile(file);
  const { frames } = readJournal(bytes)!;
  const { end } = frames[which(frames.length)]!;
  bytes[end - 1]! ^= 1;
  await writeFile(file, bytes);
}

test.each([
  ['the first', () => 0],
  ['a later', (frames: number) => Math.floor(frames / 2)],
])(
  '%s frame that cannot be read is told, and what lies behind it in the same file is kept',
  async (_, which) => {
    const dataDir = await tempDir();
    await killedUnfiled(dataDir, 500);
    await damage(dataDir, which);
    const told: string[] = [];
    await openStore(dataDir, errorsInto(told));
    expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  },
);

test('an unreadable frame that is already applied causes no loss', async () => {
  const dataDir = await tempDir();
  const acknowledged = await killedAfter(dataDir, 500);
  const [name] = readdirSync(journalOf(dataDir)) as [string];
  const journal = await readFile(join(journalOf(dataDir), name));
  const whole = readJournal(journal)!.frames;
  // The first half of it is applied; then all of it comes back.
  await writeFile(
    join(journalOf(dataDir), name),
    journal.subarray(0, whole[Math.floor(whole.length / 2)]!.end),
  );
  await (await openStore(dataDir)).close();
  await mkdir(journalOf(dataDir));
  await writeFile(join(journalOf(dataDir), name), journal);
  await damage(dataDir, () => 0);
  const told: string[] = [];
  await expectAll(await openStore(dataDir, errorsInto(told)), acknowledged);
  expect(told).toEqual([]);
});

test('a step of a newer version prevents the start, and the journal is kept', async () => {
  const dataDir = await tempDir();
  await (await openStore(dataDir)).close();
  const units = JSON.stringify([[0, 'fromTheFuture', []]]);
  await mkdir(journalOf(dataDir));
  await writeFile(
    join(journalOf(dataDir), '0.log'),
    journalBytes(databaseOf(dataDir), [{ units, parts: [] }]),
  );
  await expect(openStore(dataDir)).rejects.toThrow(/"fromTheFuture".*newer version/);
  expect(readdirSync(journalOf(dataDir))).toEqual(['0.log']);
});

test.each([
  ['both copies of its header', (bytes: Buffer) => bytes.fill(0, 0, FRAMES_AT)],
  ['everything', (bytes: Buffer) => bytes.fill(0)],
  ['everything, and its length', (bytes: Buffer) => bytes.subarray(0, 0)],
  ['the head of its only frame', (bytes: Buffer) => bytes.fill(0, FRAMES_AT, FRAMES_AT + 32)],
  [
    'a bit of its only frame',
    (bytes: Buffer) => bytes.fill(bytes[FRAMES_AT + 100]! ^ 4, FRAMES_AT + 100, FRAMES_AT + 101),
  ],
])('the only journal file is kept and reported when the disk has lost %s', async (_, lose) => {
  const { dataDir } = await withUnfiled();
  const file = join(journalOf(dataDir), '0.log');
  const bytes = lose(await readFile(file));
  await writeFile(file, bytes);
  const told: string[] = [];
  const store = await openStore(dataDir, errorsInto(told));
  expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  expect(await readFile(join(dataDir, 'inbox-damaged', '0.log'))).toEqual(bytes);
  expect(await store.inbox.accept(delivery(), undefined, '')).toBe('begun');
  expect((await records(store)).size).toBe(2);
});

test.each([0, 4096])('a header with a damaged copy at %i causes no loss and is reported', async (at) => {
  const { dataDir, webhookId } = await withUnfiled();
  const file = join(journalOf(dataDir), '0.log');
  await writeFile(file, (await readFile(file)).fill(0, at, at + 4096));
  const told: string[] = [];
  const diagnostic: Logger['diagnostic'] = ({ level, message }) => void told.push(`${level} ${message}`);
  const store = await openStore(dataDir, { ...silentLogger, diagnostic });
  expect(told).toEqual([expect.stringMatching(/^warn A disk error damaged .*0\.log/)]);
  expect((await records(store)).get(webhookId)).toBe('accepted');
});

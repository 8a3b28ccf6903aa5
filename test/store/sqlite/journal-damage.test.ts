import { readdirSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readFrames, roomFor, SALT_BYTES, writeFrame } from '../../../src/store/sqlite/journal/frame.ts';
import { tempDir } from '../../support/daemon.ts';
import { delivery } from '../../support/new-delivery.ts';
import { errorsInto, expectAll, journalOf, killedAfter, openStore, records } from './journalled-store.ts';

test('frames are read back as they were written; of a file that was cut those before it, of one that was changed all others', () => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  const frame = fc.record({ units: fc.json(), parts: fc.array(bytes, { maxLength: 3 }) });
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 6 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (frames, at, flip) => {
        const salt = Buffer.alloc(SALT_BYTES, 7);
        const written = frames.map((each, n) => {
          const packed = { ...each, length: each.parts.reduce((sum, part) => sum + part.length, 0) };
          const target = Buffer.alloc(roomFor(packed));
          return target.subarray(0, writeFrame(target, packed, n + 1, salt));
        });
        const file = Buffer.concat([...written, Buffer.alloc(50)]);
        const read = [...readFrames(file)];
        expect(read.map(({ sequence, units }) => [sequence, units])).toEqual(
          frames.map(({ units }, n) => [n + 1, units]),
        );
        expect(read.map((each) => Buffer.from(each.bytes).toString('hex'))).toEqual(
          frames.map(({ parts }) => Buffer.concat(parts).toString('hex')),
        );

        const place = at % file.length;
        const whole = read.filter(({ end }) => end <= place).length;
        expect([...readFrames(file.subarray(0, place))]).toHaveLength(whole);
        const changed = Buffer.from(file);
        changed[place]! ^= flip;
        const isSalt = whole === 0 && place >= 16 && place < 16 + SALT_BYTES;
        const others = read.map(({ sequence }) => sequence).filter((sequence) => sequence !== whole + 1);
        expect([...readFrames(changed)].map(({ sequence }) => sequence)).toEqual(isSalt ? [] : others);
      },
    ),
  );
});

test('what an earlier turn left behind the last frame is no frame, even if it looks like the next', () => {
  const packed = { units: '[]', parts: [], length: 0 };
  const write = (sequence: number, salt: number): Buffer => {
    const target = Buffer.alloc(roomFor(packed));
    return target.subarray(0, writeFrame(target, packed, sequence, Buffer.alloc(SALT_BYTES, salt)));
  };
  const sequences = (...frames: Buffer[]): number[] =>
    [...readFrames(Buffer.concat(frames))].map(({ sequence }) => sequence);
  expect(sequences(write(5, 1), write(6, 1))).toEqual([5, 6]);
  expect(sequences(write(5, 1), write(6, 2))).toEqual([5]);
  expect(sequences(write(5, 1), write(6, 2), write(7, 1))).toEqual([5, 7]);
});

test('a journal with a hole is applied up to it, and kept aside for whoever can make sense of the rest', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  for (const aside of ['inbox-damaged', 'inbox-damaged-2']) {
    await killedAfter(dataDir, 500);
    const [name] = readdirSync(journalOf(dataDir)) as [string];
    const file = join(journalOf(dataDir), name);
    // The second half becomes a file of its own, without its first frame.
    const bytes = await readFile(file);
    const frames = [...readFrames(bytes)];
    const middle = Math.floor(frames.length / 2);
    await writeFile(join(journalOf(dataDir), '77.log'), bytes.subarray(frames[middle]!.end));
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
  const frames = [...readFrames(bytes)];
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
    await killedAfter(dataDir, 500);
    await damage(dataDir, which);
    const told: string[] = [];
    await openStore(dataDir, errorsInto(told));
    expect(told).toEqual([expect.stringContaining('inbox-damaged')]);
  },
);

test('a frame that cannot be read any more costs nothing when it is applied', async () => {
  const dataDir = await tempDir();
  const acknowledged = await killedAfter(dataDir, 500);
  const [name] = readdirSync(journalOf(dataDir)) as [string];
  const journal = await readFile(join(journalOf(dataDir), name));
  const whole = [...readFrames(journal)];
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

test('a step that only a newer version knows is a reason not to start, and the journal stays', async () => {
  const dataDir = await tempDir();
  await (await openStore(dataDir)).close();
  const packed = { units: JSON.stringify([[0, 'fromTheFuture', []]]), parts: [], length: 0 };
  const target = Buffer.alloc(roomFor(packed));
  const length = writeFrame(target, packed, 1, Buffer.alloc(SALT_BYTES, 1));
  await mkdir(journalOf(dataDir));
  await writeFile(join(journalOf(dataDir), '0.log'), target.subarray(0, length));
  await expect(openStore(dataDir)).rejects.toThrow(/"fromTheFuture".*newer version/);
  expect(readdirSync(journalOf(dataDir))).toEqual(['0.log']);
});

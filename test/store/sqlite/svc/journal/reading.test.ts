import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  FRAMES_AT,
  headerBytes,
  newHeader,
  readHeader,
} from '../../../../../src/store/sqlite/svc/journal/header.ts';
import {
  type JournalContent,
  readJournal,
} from '../../../../../src/store/sqlite/svc/journal/read-journal.ts';
import { type Content, frameBytes, journalBytes } from './journal-bytes.ts';

const DATABASE = Buffer.alloc(16, 9);
const PAGE = 4096;
const EMPTY: Content = { units: '[]', parts: [] };

const content: fc.Arbitrary<Content> = fc.record({
  units: fc.json(),
  parts: fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 3 }),
});
const contents = fc.array(content, { minLength: 1, maxLength: 6 });

const sequences = (content: JournalContent | undefined): number[] | undefined =>
  content?.frames.map(({ sequence }) => sequence);
/** Whether somebody who has applied so much is told that something is missing. */
const misses = ({ frames, isStartLost, writtenUntil }: JournalContent, applied: number): boolean =>
  isStartLost ||
  writtenUntil > applied + frames.length ||
  frames.some(({ sequence }, n) => sequence !== applied + n + 1);
const zeroed = (file: Buffer, from: number, to: number): Buffer =>
  Buffer.from(file).fill(0, from, Math.min(to, file.length));

test('a file is read as it was written, whatever an earlier use left behind', () => {
  fc.assert(
    fc.property(contents, fc.array(content, { maxLength: 6 }), (turn, leftovers) => {
      const content = readJournal(journalBytes(DATABASE, turn, { first: 7, leftovers }))!;
      expect(content.database).toEqual(DATABASE);
      expect(content.frames.map(({ units }) => units.toString())).toEqual(turn.map(({ units }) => units));
      expect(content.frames.map(({ bytes }) => Buffer.from(bytes))).toEqual(
        turn.map(({ parts }) => Buffer.concat(parts)),
      );
      expect(misses(content, 6)).toBe(false);
      expect(content.hasDamagedHeader).toBe(false);
    }),
  );
});

test('all frames of a truncated file are read up to its end, without a report of damage', () => {
  fc.assert(
    fc.property(contents, fc.nat(), (turn, n) => {
      const file = journalBytes(DATABASE, turn);
      const place = FRAMES_AT + (n % (file.length - FRAMES_AT));
      const whole = readJournal(file)!.frames.filter(({ end }) => end <= place);
      const content = readJournal(file.subarray(0, place))!;
      expect(sequences(content)).toEqual(whole.map(({ sequence }) => sequence));
      expect(misses(content, 0)).toBe(false);
    }),
  );
});

test('a changed byte is always noticed and loses one frame at most', () => {
  fc.assert(
    fc.property(
      contents,
      fc.array(content, { maxLength: 6 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (turn, leftovers, n, flip) => {
        const file = journalBytes(DATABASE, turn, { first: 7, leftovers });
        const { frames } = readJournal(file)!;
        const end = frames.at(-1)!.end;
        const place = FRAMES_AT + (n % (end - FRAMES_AT));
        const hit = frames.findIndex((frame) => frame.end > place);
        // A head's own numbers: the one that was begun is not known any more, and it may look like one cut off.
        fc.pre(place - (frames[hit - 1]?.end ?? FRAMES_AT) >= 16);
        file[place]! ^= flip;
        const content = readJournal(file)!;
        const others = frames.map(({ sequence }) => sequence).filter((sequence) => sequence !== 7 + hit);
        expect(sequences(content)!.filter((sequence) => sequence >= 7)).toEqual(others);
        expect(misses(content, 6)).toBe(true);
      },
    ),
  );
});

test.each(['blanked', 'overwritten'])(
  'a head that was %s is noticed, also the only one and the last',
  (how) => {
    fc.assert(
      fc.property(contents, fc.array(content, { maxLength: 6 }), fc.nat(), (turn, leftovers, n) => {
        const file = journalBytes(DATABASE, turn, { first: 7, leftovers });
        const { frames } = readJournal(file)!;
        const hit = n % frames.length;
        const at = frames[hit - 1]?.end ?? FRAMES_AT;
        file.fill(how === 'blanked' ? 0 : 0xa5, at, at + 32);
        expect(misses(readJournal(file)!, 6)).toBe(true);
      }),
    );
  },
);

test('a page of zeros does not destroy the header and is noticed in frames', () => {
  const large: Content = { units: '[]', parts: [Buffer.alloc(3000, 1)] };
  const file = journalBytes(DATABASE, Array(5).fill(large));
  // Of the last frame some must be left: without its end it is one that was cut off.
  for (let at = 0; at + PAGE < file.length; at += PAGE) {
    const content = readJournal(zeroed(file, at, at + PAGE))!;
    expect(content.database, `${at}`).toEqual(DATABASE);
    expect(content.hasDamagedHeader, `${at}`).toBe(at < FRAMES_AT);
    expect(misses(content, 0), `${at}`).toBe(at >= FRAMES_AT);
  }
});

test('a file without both copies of the header is not recognised as a journal', () => {
  const file = journalBytes(DATABASE, [EMPTY]);
  expect(readJournal(zeroed(file, 0, FRAMES_AT))).toBeUndefined();
  expect(readJournal(zeroed(file, 0, file.length))).toBeUndefined();
});

test('a write that was interrupted at any point is not reported as damage', () => {
  const before = journalBytes(DATABASE, [EMPTY, EMPTY], { first: 7 });
  const last = readJournal(before)!.frames.at(-1)!.end;
  const { bytes } = frameBytes({ units: '[]', parts: [Buffer.alloc(900, 2)] }, 9, readHeader(before)!.salt);
  // Of the next one, and of the first of a new turn; what is not there yet is what was there before.
  for (const [at, begun] of [
    [last, bytes],
    [FRAMES_AT, bytes],
  ] as const)
    for (let done = 32; done < bytes.length - 16; done += 50) {
      const file = Buffer.alloc(Math.max(before.length, at + bytes.length));
      before.copy(file);
      begun.copy(file, at, 0, done);
      const content = readJournal(file)!;
      expect(misses(content, at === last ? 6 : 8), `${at} ${done}`).toBe(false);
    }
});

test('a body that imitates a frame is not read as a frame', () => {
  const own = journalBytes(DATABASE, [EMPTY]);
  const forged = frameBytes(EMPTY, 2, Buffer.alloc(8, 1)).bytes;
  expect(sequences(readJournal(Buffer.concat([own, forged])))).toEqual([1]);
  const carrying = journalBytes(DATABASE, [{ units: '[]', parts: [forged] }, EMPTY]);
  carrying[FRAMES_AT + 40]! ^= 1;
  expect(sequences(readJournal(carrying))).toEqual([2]);
});

test('a header is read from either copy, but not from other bytes', () => {
  fc.assert(
    fc.property(
      fc.nat(31),
      fc.integer({ min: 1, max: 255 }),
      fc.constantFrom(0, PAGE),
      (place, flip, copy) => {
        const header = newHeader(DATABASE);
        const bytes = headerBytes(header);
        bytes[copy + place]! ^= flip;
        expect(readHeader(bytes)).toEqual(header);
        bytes[PAGE - copy + place]! ^= flip;
        expect(readHeader(bytes)).toBeUndefined();
      },
    ),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3 * PAGE, size: 'max' }), (bytes) => {
      expect(readHeader(Buffer.from(bytes))).toBeUndefined();
      expect(readJournal(Buffer.from(bytes))?.frames ?? []).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

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

test('a file is read back as it was written, whatever an earlier turn left behind', () => {
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

test('of a file that was cut all frames before that are read, and it is no damage', () => {
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

test('a changed byte costs one frame at most, and whichever it is, it is noticed', () => {
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

test('a page of zeros anywhere is survived by the header, and noticed where frames were', () => {
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

test('both copies of the header gone, it is no journal any more', () => {
  const file = journalBytes(DATABASE, [EMPTY]);
  expect(readJournal(zeroed(file, 0, FRAMES_AT))).toBeUndefined();
  expect(readJournal(zeroed(file, 0, file.length))).toBeUndefined();
});

test('a write that was cut off leaves no damage, wherever it was cut', () => {
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

test('what a sender chose is no frame, even if it looks like the next', () => {
  const own = journalBytes(DATABASE, [EMPTY]);
  const forged = frameBytes(EMPTY, 2, Buffer.alloc(8, 1)).bytes;
  expect(sequences(readJournal(Buffer.concat([own, forged])))).toEqual([1]);
  const carrying = journalBytes(DATABASE, [{ units: '[]', parts: [forged] }, EMPTY]);
  carrying[FRAMES_AT + 40]! ^= 1;
  expect(sequences(readJournal(carrying))).toEqual([2]);
});

test('a header is read from either copy, and from nothing that is none', () => {
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

import { crc32 } from 'node:zlib';
import { layOut, type Packed } from '../committer/pack.ts';

/** Magic number at the start of a frame: the text "svcj". */
const MAGIC = 0x6a637673;
/** Size of a frame head. A head contains a magic number, a checksum, the sequence number, the salt and two lengths. */
export const HEAD_BYTES = 32;
const SALT_AT = 16;
export const SALT_BYTES = 8;
/**
 * Size of the end mark, which contains the salt and the sequence number of the last frame. The next frame overwrites
 * the end mark.
 */
const END_BYTES = SALT_BYTES + 8;

export interface Frame {
  /** Sequence number of the frame. Consecutive frames have consecutive numbers, even across files. */
  sequence: number;
  /** JSON of an array of PackedUnit, in UTF-8. */
  units: Buffer;
  /** Byte values that `units` references by offset and length. */
  bytes: Uint8Array;
  /** Offset at which the next frame starts. */
  end: number;
}

export function maxFrameBytes({ units, length }: Packed): number {
  return HEAD_BYTES + 3 * units.length + length + END_BYTES;
}

/**
 * Writes a frame and its end mark to the start of `target`. Returns the offsets at which the frame and the end mark
 * end.
 */
export function writeFrame(
  target: Buffer,
  packed: Packed,
  sequence: number,
  salt: Uint8Array,
): { end: number; written: number } {
  const { units, parts, length } = packed;
  const textBytes = target.write(units, HEAD_BYTES, 'utf8');
  layOut(parts, target, HEAD_BYTES + textBytes);
  const end = HEAD_BYTES + textBytes + length;
  target.writeUInt32LE(MAGIC, 0);
  target.writeDoubleLE(sequence, 8);
  target.set(salt, SALT_AT);
  target.writeUInt32LE(textBytes, 24);
  target.writeUInt32LE(length, 28);
  target.writeUInt32LE(crc32(target.subarray(8, end)), 4);
  target.set(salt, end);
  target.writeDoubleLE(sequence, end + SALT_BYTES);
  return { end, written: end + END_BYTES };
}

/** Yields adjacent frames until the first incomplete frame. */
export function* readFrames(bytes: Buffer): Generator<Frame> {
  const salt = saltOf(bytes);
  for (let at = 0, frame = frameAt(bytes, at, salt); frame; frame = frameAt(bytes, at, salt)) {
    yield frame;
    at = frame.end;
  }
}

export function saltOf(bytes: Buffer): Buffer {
  return bytes.subarray(SALT_AT, SALT_AT + SALT_BYTES);
}

/**
 * Returns the frame at an offset. Returns undefined if the frame is incomplete, or if its salt or checksum is wrong.
 */
export function frameAt(file: Buffer, at: number, salt: Buffer): Frame | undefined {
  const head = headAt(file, at, salt);
  if (!head || head.end > file.length) return undefined;
  if (crc32(file.subarray(at + 8, head.end)) !== file.readUInt32LE(at + 4)) return undefined;
  const text = at + HEAD_BYTES;
  return {
    sequence: head.sequence,
    units: file.subarray(text, head.bytes),
    bytes: file.subarray(head.bytes, head.end),
    end: head.end,
  };
}

/** Returns the sequence number of the frame that starts at an offset, even if the frame is incomplete. */
export function begunAt(file: Buffer, at: number, salt: Buffer): number | undefined {
  return headAt(file, at, salt)?.sequence;
}

/** Returns true if the end mark at this offset names `sequence` as the last frame. */
export function isEndOf(sequence: number, file: Buffer, at: number, salt: Buffer): boolean {
  return (
    file.length >= at + END_BYTES &&
    file.compare(salt, 0, SALT_BYTES, at, at + SALT_BYTES) === 0 &&
    file.readDoubleLE(at + SALT_BYTES) === sequence
  );
}

/**
 * Finds the next complete frame whose sequence number is above `sequence`. Each end mark stores a sequence number;
 * `marked` is the highest of those before the frame.
 */
export function findNewerFrame(
  file: Buffer,
  at: number,
  sequence: number,
  salt: Buffer,
): { frame: Frame | undefined; marked: number } {
  let marked = sequence;
  for (let found = file.indexOf(salt, at + 1); found >= 0; found = file.indexOf(salt, found + 1)) {
    const frame = frameAt(file, found - SALT_AT, salt);
    if (frame && frame.sequence > sequence) return { frame, marked };
    if (!frame) marked = Math.max(marked, markAt(file, found));
  }
  return { frame: undefined, marked };
}

/**
 * Returns the sequence number of an end mark, or 0 if the salt belongs to a frame head. The bytes after the salt of a
 * frame head never form a safe integer.
 */
function markAt(file: Buffer, at: number): number {
  if (at + END_BYTES > file.length) return 0;
  const marked = file.readDoubleLE(at + SALT_BYTES);
  return Number.isSafeInteger(marked) ? marked : 0;
}

function headAt(
  file: Buffer,
  at: number,
  salt: Buffer,
): { sequence: number; bytes: number; end: number } | undefined {
  if (at < 0 || file.length - at < HEAD_BYTES || salt.length < SALT_BYTES) return undefined;
  if (file.readUInt32LE(at) !== MAGIC) return undefined;
  if (file.compare(salt, 0, SALT_BYTES, at + SALT_AT, at + SALT_AT + SALT_BYTES) !== 0) return undefined;
  const bytes = at + HEAD_BYTES + file.readUInt32LE(at + 24);
  return { sequence: file.readDoubleLE(at + 8), bytes, end: bytes + file.readUInt32LE(at + 28) };
}

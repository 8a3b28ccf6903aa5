import { crc32 } from 'node:zlib';
import { layOut, type Packed } from '../committer/pack.ts';

/** "svcj" */
const MAGIC = 0x6a637673;
/** Magic, checksum of all that follows, sequence, salt, lengths of the text and of the bytes. */
const HEADER_BYTES = 32;
const SALT_AT = 16;
export const SALT_BYTES = 8;

/** What was brought to the disk by one write. */
export interface Frame {
  /** Counts frames over all files, without a gap. */
  sequence: number;
  /** JSON of PackedUnit[]. */
  units: string;
  /** What the units point into. */
  bytes: Uint8Array;
  /** Where the next one begins. */
  end: number;
}

/** Room that a frame may take at the most. */
export function roomFor({ units, length }: Packed): number {
  return HEADER_BYTES + 3 * units.length + length;
}

/** Writes a frame to the start of `target`, which has room; returns its length. */
export function writeFrame(target: Buffer, packed: Packed, sequence: number, salt: Uint8Array): number {
  const { units, parts, length } = packed;
  const textBytes = target.write(units, HEADER_BYTES, 'utf8');
  layOut(parts, target, HEADER_BYTES + textBytes);
  const end = HEADER_BYTES + textBytes + length;
  target.writeUInt32LE(MAGIC, 0);
  target.writeDoubleLE(sequence, 8);
  target.set(salt, SALT_AT);
  target.writeUInt32LE(textBytes, 24);
  target.writeUInt32LE(length, 28);
  target.writeUInt32LE(crc32(target.subarray(8, end)), 4);
  return end;
}

/**
 * The frames of the turn that `file` begins with. One that is not whole is passed over: whether it is missed, the
 * sequence of those behind it tells. A file is written over and over, and what lies behind its last frame may be what a
 * sender chose: the salt, which nobody outside has seen, tells the frames of one turn from such leftovers.
 */
export function* readFrames(file: Buffer): Generator<Frame> {
  const salt = file.subarray(SALT_AT, SALT_AT + SALT_BYTES);
  // Blocks that a power cut left without content; too short a file has none at all.
  if (salt.every((byte) => byte === 0)) return;
  for (let at = 0; at >= 0; ) {
    const frame = frameAt(file, at, salt);
    if (frame) yield frame;
    at = frame ? frame.end : file.indexOf(salt, at + SALT_AT + 1) - SALT_AT;
  }
}

function frameAt(file: Buffer, at: number, salt: Buffer): Frame | undefined {
  if (file.length - at < HEADER_BYTES || file.readUInt32LE(at) !== MAGIC) return undefined;
  if (file.compare(salt, 0, SALT_BYTES, at + SALT_AT, at + SALT_AT + SALT_BYTES) !== 0) return undefined;
  const text = at + HEADER_BYTES;
  const bytes = text + file.readUInt32LE(at + 24);
  const end = bytes + file.readUInt32LE(at + 28);
  if (end > file.length || crc32(file.subarray(at + 8, end)) !== file.readUInt32LE(at + 4)) return undefined;
  return {
    sequence: file.readDoubleLE(at + 8),
    units: file.toString('utf8', text, bytes),
    bytes: file.subarray(bytes, end),
    end,
  };
}

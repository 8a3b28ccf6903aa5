import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { SALT_BYTES } from './frame.ts';

/** Data at the start of a journal file, before its first frame. */
export interface JournalHeader {
  /** Id of the database to which the file belongs, from `delivery_journal.id`. */
  database: Buffer;
  /** Random bytes that every frame repeats. The bytes are secret, so that no sender can forge a frame in a body. */
  salt: Buffer;
}

/** Magic number at the start of a header: the text "svch". */
const MAGIC = 0x68637673;
export const DATABASE_ID_BYTES = 16;
const DATABASE_AT = 8;
const SALT_AT = DATABASE_AT + DATABASE_ID_BYTES;
const HEADER_BYTES = SALT_AT + SALT_BYTES;
/**
 * Offsets of the two copies of the header. The copies are on separate pages, because a disk error destroys a whole
 * sector.
 */
const COPIES_AT = [0, 4096];
/** Offset of the first frame. */
export const FRAMES_AT = 8192;

export function newHeader(database: Buffer): JournalHeader {
  return { database, salt: randomBytes(SALT_BYTES) };
}

/** Encodes the header with both copies and the padding before the first frame. */
export function headerBytes({ database, salt }: JournalHeader): Buffer {
  const bytes = Buffer.alloc(FRAMES_AT);
  for (const at of COPIES_AT) {
    bytes.writeUInt32LE(MAGIC, at);
    bytes.set(database, at + DATABASE_AT);
    bytes.set(salt, at + SALT_AT);
    bytes.writeUInt32LE(crc32(bytes.subarray(at + DATABASE_AT, at + HEADER_BYTES)), at + 4);
  }
  return bytes;
}

/** Reads the header from either copy. Returns undefined when both copies are damaged. */
export function readHeader(file: Buffer): JournalHeader | undefined {
  return copies(file).find((copy) => copy !== undefined);
}

export function hasDamagedHeaderCopy(file: Buffer): boolean {
  return copies(file).includes(undefined);
}

function copies(file: Buffer): Array<JournalHeader | undefined> {
  return COPIES_AT.map((at) => copyAt(file, at));
}

function copyAt(file: Buffer, at: number): JournalHeader | undefined {
  if (file.length < at + HEADER_BYTES || file.readUInt32LE(at) !== MAGIC) return undefined;
  const content = file.subarray(at + DATABASE_AT, at + HEADER_BYTES);
  if (crc32(content) !== file.readUInt32LE(at + 4)) return undefined;
  return {
    database: content.subarray(0, DATABASE_ID_BYTES),
    salt: content.subarray(DATABASE_ID_BYTES),
  };
}

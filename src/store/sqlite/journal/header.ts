import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { SALT_BYTES } from './frame.ts';

/** What a file of the journal begins with, before its first frame. */
export interface JournalHeader {
  /** That of the database whose deliveries it holds: `delivery_journal.id`. */
  database: Buffer;
  /** What its frames carry. Nobody outside has seen it, so nothing that a sender chose looks like a frame. */
  salt: Buffer;
}

/** "svch" */
const MAGIC = 0x68637673;
export const DATABASE_ID_BYTES = 16;
const DATABASE_AT = 8;
const SALT_AT = DATABASE_AT + DATABASE_ID_BYTES;
const HEADER_BYTES = SALT_AT + SALT_BYTES;
/** Twice, in pages of their own: what a disk loses at a time is a sector. */
const COPIES_AT = [0, 4096];
/** Where the first frame goes. */
export const FRAMES_AT = 8192;

export function newHeader(database: Buffer): JournalHeader {
  return { database, salt: randomBytes(SALT_BYTES) };
}

/** All that goes before the frames. */
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

/** From either copy; undefined when neither is whole. */
export function readHeader(file: Buffer): JournalHeader | undefined {
  return copies(file).find((copy) => copy !== undefined);
}

/** Whether a disk has changed one of the copies. */
export function isHeaderWorn(file: Buffer): boolean {
  return copies(file).includes(undefined);
}

function copies(file: Buffer): Array<JournalHeader | undefined> {
  return COPIES_AT.map((at) => copyAt(file, at));
}

function copyAt(file: Buffer, at: number): JournalHeader | undefined {
  if (file.length < at + HEADER_BYTES || file.readUInt32LE(at) !== MAGIC) return undefined;
  const facts = file.subarray(at + DATABASE_AT, at + HEADER_BYTES);
  if (crc32(facts) !== file.readUInt32LE(at + 4)) return undefined;
  return {
    database: facts.subarray(0, DATABASE_ID_BYTES),
    salt: facts.subarray(DATABASE_ID_BYTES),
  };
}

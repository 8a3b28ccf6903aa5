import { constants, existsSync, fdatasync, open, readdirSync, readFileSync, readSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from '../../../kit/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import { type Reading, readJournal } from './reading.ts';

/** In the data folder. */
export const JOURNAL_FOLDER = 'inbox';

const NAME = /^\d+\.log$/;
/** Of a file whose header is not on the disk yet, and of one that is kept for its blocks. */
const UNUSED_NAME = /^\d+\.log\.(?:new|spare)$/;
const ASIDE_NAME = /^\d+\.log\.of-/;

export function isJournalFile(name: string): boolean {
  return NAME.test(name);
}

export function journalFile(folder: string, number: number): string {
  return join(folder, `${number}.log`);
}

/** The name of a file until all of its header is on the disk: whatever has lost its header was a whole file once. */
export function unfinishedFile(file: string): string {
  return `${file}.new`;
}

/** The name of a file while all of it is applied. */
export function spareFile(file: string): string {
  return `${file}.spare`;
}

/** The name of a file that another database wrote, whose id is given where the file says it. */
export function asideFile(file: string, database: Buffer | null): string {
  return `${file}.of-${database ? `database-${shortId(database)}` : 'unknown-database'}`;
}

/** Enough of an id for a person to tell one from another. */
export function shortId(database: Uint8Array): string {
  return Buffer.from(database).toString('hex', 0, 4);
}

/** Those that are there, in no order that means anything. */
export function journalFiles(folder: string): string[] {
  return filesOf(folder, NAME);
}

/** Those with nothing in them that anybody needs. */
export function unusedFiles(folder: string): string[] {
  return filesOf(folder, UNUSED_NAME);
}

/** Those of other databases, which wait for an operator. */
export function asideFiles(folder: string): string[] {
  return filesOf(folder, ASIDE_NAME).sort();
}

function filesOf(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map(({ name }) => join(folder, name));
}

export interface JournalFile {
  file: string;
  /** Undefined when it cannot be recognised as one of a journal. */
  database: Buffer | null | undefined;
  /** Of its first frame. */
  first: number | undefined;
}

/** In the order in which they were written; last those without a frame that can be read. */
export function journalInOrder(folder: string): JournalFile[] {
  return journalFiles(folder)
    .map((file) => {
      const reading = readJournal(readWhole(file));
      return { file, database: reading?.database, first: reading?.frames[0]?.sequence };
    })
    .sort((a, b) => (a.first ?? Number.MAX_VALUE) - (b.first ?? Number.MAX_VALUE));
}

/** Empty when it is gone: whoever writes the journal removes what is applied. */
export function readWhole(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

/** More than a file that is whole ever took. */
const MOST_LOOKS = 5;

/**
 * A file that may be written to meanwhile. Behind a frame that was caught in the midst may be whole ones, which would
 * look like damage; another look finds it whole.
 */
export function readWhileWritten(file: string): Buffer {
  for (let look = 1; ; look++) {
    const bytes = readWhole(file);
    if (look === MOST_LOOKS || isWhole(readJournal(bytes))) return bytes;
  }
}

function isWhole(reading: Reading | undefined): boolean {
  if (!reading || reading.isStartLost || reading.writtenUntil > 0) return false;
  return reading.frames.every(({ sequence }, n) => sequence === reading.frames[0]!.sequence + n);
}

/** As much of it as is there. */
export function readRange({ fd, from, to }: JournalRange): Buffer {
  const bytes = Buffer.allocUnsafe(to - from);
  for (let filled = 0; filled < bytes.length; ) {
    const count = readSync(fd, bytes, filled, bytes.length - filled, from + filled);
    if (count === 0) return bytes.subarray(0, filled);
    filled += count;
  }
  return bytes;
}

/**
 * Where a write can bring itself to the disk, the sync is no call of its own, which could begin a turn of the event loop
 * later only: a busy gateway spent a twentieth of its time waiting for that. On macOS such a write stops at the drive's cache.
 */
const WRITES_SYNC = process.platform === 'linux';
const FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | (WRITES_SYNC ? constants.O_DSYNC : 0);

const [openFile, writeSome, syncData] = [promisify(open), promisify(write), promisify(fdatasync)];

/** A new file for `writeSynced`. */
export function createSynced(file: string): Promise<number> {
  return openFile(file, FLAGS, 0o600);
}

/** Writes all of `bytes` from a place of the file on; they are on the disk when it settles. */
export async function writeSynced(fd: number, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await writeSome(fd, bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
  if (!WRITES_SYNC) await syncData(fd);
}

import { constants, existsSync, fdatasync, open, readdirSync, readFileSync, readSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from '../../../../kit/errors/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import { type JournalContent, readJournal } from './read-journal.ts';

/** Name of the journal's folder in the data folder. */
export const JOURNAL_FOLDER = 'inbox';

const NAME = /^\d+\.log$/;
/**
 * Names of files that contain no deliveries: new files whose header is not synced yet, and applied files that are kept
 * for reuse.
 */
const UNUSED_NAME = /^\d+\.log\.(?:new|spare)$/;
const FOREIGN_NAME = /^\d+\.log\.of-/;

export function isJournalFile(name: string): boolean {
  return NAME.test(name);
}

export function journalFile(folder: string, number: number): string {
  return join(folder, `${number}.log`);
}

/**
 * Name of a new file until its header is synced. Only then does the file get its final name, so a final name without a
 * header means damage.
 */
export function unfinishedFile(file: string): string {
  return `${file}.new`;
}

/** Name of a fully applied file that is kept for reuse. */
export function spareFile(file: string): string {
  return `${file}.spare`;
}

/** Name of a file that another database owns. It includes the id of that database, if the header has one. */
export function foreignFile(file: string, database: Buffer | null): string {
  return `${file}.of-${database ? `database-${shortId(database)}` : 'unknown-database'}`;
}

export function shortId(database: Uint8Array): string {
  return Buffer.from(database).toString('hex', 0, 4);
}

/** Returns the journal files of a folder, in no particular order. */
export function journalFiles(folder: string): string[] {
  return filesOf(folder, NAME);
}

/** Returns the files that contain no unapplied frames. */
export function unusedFiles(folder: string): string[] {
  return filesOf(folder, UNUSED_NAME);
}

/** Returns the files of other databases, which an operator must handle. */
export function foreignFiles(folder: string): string[] {
  return filesOf(folder, FOREIGN_NAME).sort();
}

function filesOf(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map(({ name }) => join(folder, name));
}

export interface JournalFile {
  file: string;
  /**
   * Id of the owning database. Null if the header has none, undefined if the file is not recognised as a journal file.
   */
  database: Buffer | null | undefined;
  first: number | undefined;
}

/** Returns the journal files in write order. Files without a readable frame come last. */
export function journalInOrder(folder: string): JournalFile[] {
  return journalFiles(folder)
    .map((file) => {
      const content = readJournal(readWhole(file));
      return { file, database: content?.database, first: content?.frames[0]?.sequence };
    })
    .sort((a, b) => (a.first ?? Number.MAX_VALUE) - (b.first ?? Number.MAX_VALUE));
}

/** Reads a file. A missing file gives an empty buffer, because the writer may have removed it after applying it. */
export function readWhole(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

/** Maximum reads of a file that another process may be writing. In tests, fewer were always enough. */
const MAX_READS = 5;

/**
 * Reads a file that another process may be writing. A frame that is only half written looks like damage, so the file is
 * read again then.
 */
export function readWhileWritten(file: string): Buffer {
  for (let attempt = 1; ; attempt++) {
    const bytes = readWhole(file);
    if (attempt === MAX_READS || isWhole(readJournal(bytes))) return bytes;
  }
}

function isWhole(content: JournalContent | undefined): boolean {
  if (!content || content.isStartLost || content.writtenUntil > 0) return false;
  return content.frames.every(({ sequence }, n) => sequence === content.frames[0]!.sequence + n);
}

/** Reads a range of a file. Returns fewer bytes when the file is shorter. */
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
 * O_DSYNC makes each write durable. A separate sync call would start only in a later event-loop turn. On macOS, O_DSYNC
 * does not flush the cache of the drive, so it is not used there.
 */
const WRITES_SYNC = process.platform === 'linux';
const FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | (WRITES_SYNC ? constants.O_DSYNC : 0);

const [openFile, writeSome, syncData] = [promisify(open), promisify(write), promisify(fdatasync)];

export function createSynced(file: string): Promise<number> {
  return openFile(file, FLAGS, 0o600);
}

/** Writes all bytes at an offset. Settles once they are on disk. */
export async function writeSynced(fd: number, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await writeSome(fd, bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
  if (!WRITES_SYNC) await syncData(fd);
}

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
 * Names of files without deliveries. These files are new files without a synced header, and applied files that are kept
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
 * Returns the temporary name of a file whose header is not synced yet. A file gets its final name only after the sync,
 * so a file with a final name but without a header is damaged.
 */
export function unfinishedFile(file: string): string {
  return `${file}.new`;
}

/** Returns the name of a fully applied file that is kept for reuse. */
export function spareFile(file: string): string {
  return `${file}.spare`;
}

/**
 * Returns the new name for a file of another database. The name contains the id of that database if the header has an
 * id.
 */
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

/** Returns the journal files that contain no deliveries to recover: new files and fully applied files. */
export function unusedFiles(folder: string): string[] {
  return filesOf(folder, UNUSED_NAME);
}

/** Returns the files that belong to other databases. An operator must decide what to do with these files. */
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
   * Id of the database to which the file belongs. Null for a file without a header. Undefined for a file that is not a
   * journal file.
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

/** Reads a file. Returns an empty buffer for a missing file, because the writer removes applied files. */
export function readWhole(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

/**
 * Maximum number of reads of a file to which another process might be writing. In tests, fewer reads were always
 * sufficient.
 */
const MAX_READS = 5;

/**
 * Reads a file to which another process might be writing. A file that looks damaged is read again, because its last
 * frame might be half-written.
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

/** Reads a range of a file. Returns fewer bytes if the file is shorter than the range. */
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
 * Whether files are opened with O_DSYNC, which makes each write durable. On macOS, O_DSYNC does not flush the drive's
 * cache.
 */
const WRITES_SYNC = process.platform === 'linux';
const FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | (WRITES_SYNC ? constants.O_DSYNC : 0);

const [openFile, writeSome, syncData] = [promisify(open), promisify(write), promisify(fdatasync)];

export function createSynced(file: string): Promise<number> {
  return openFile(file, FLAGS, 0o600);
}

/** Writes all bytes at an offset. Resolves once the bytes are on disk. */
export async function writeSynced(fd: number, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await writeSome(fd, bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
  if (!WRITES_SYNC) await syncData(fd);
}

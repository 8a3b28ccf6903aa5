import { close, existsSync, fstatSync, fsync, mkdir, open, rename, rm, rmdir, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { createSynced, journalFile, spareFile, unfinishedFile, writeSynced } from './files.ts';
import { FRAMES_AT, headerBytes, type JournalHeader, newHeader } from './header.ts';

/**
 * Journal file that this process has open. Once all of its frames are applied, the file is overwritten from the start.
 */
export interface Segment {
  file: string;
  fd: number;
  /** Inode of the open file. If the file's path has another inode, the file was replaced. */
  inode: bigint;
  /** Offset at which the next frame is written. */
  size: number;
  salt: Buffer;
  sequence: number;
}

export interface SegmentOptions {
  /** Size at which a segment counts as full. */
  segmentBytes: number;
  maxSegments: number;
  /** Maximum number of applied segments that are kept for the next burst, in addition to the current segment. */
  spareSegments: number;
}

export interface SegmentsDeps extends SegmentOptions {
  database: Buffer;
  /**
   * Callback that is called if another process has removed or replaced a file. All frames of the file are already in
   * the database.
   */
  gone(file: string): void;
}

const [openFile, closeFile, syncFile] = [promisify(open), promisify(close), promisify(fsync)];
const renameFile = promisify(rename);

/** Journal files of one process. Files are created when the first frame is written. */
export class Segments {
  readonly folder: string;
  readonly #deps: SegmentsDeps;
  #current: Segment | undefined;
  #full: Segment[] = [];
  readonly #free: Segment[] = [];
  /**
   * Applied segments that are kept for reuse. Their files are renamed, so that neither a recovery nor a backup reads
   * them.
   */
  readonly #spare: Segment[] = [];
  #created = 0;
  #trimmed: Promise<void> = Promise.resolve();

  constructor(folder: string, deps: SegmentsDeps) {
    this.folder = folder;
    this.#deps = deps;
  }

  /**
   * Returns the segment for the next frame. Returns undefined if all segments are full of unapplied frames. Throws
   * system errors.
   */
  writable(applied: number): Segment | Promise<Segment | undefined> {
    const current = this.#current;
    const isApplied = current !== undefined && current.sequence <= applied;
    if (current && isApplied && isInPlace(current)) return startOver(current);
    if (current && !isApplied && current.size - FRAMES_AT < this.#deps.segmentBytes) return current;
    if (current) this.#full.push(current);
    this.#current = undefined;
    this.#release(applied);
    return this.#next();
  }

  /**
   * Frees disk space after a burst. Some files are kept, because syncing blocks that are already allocated takes half
   * the time.
   */
  trim(applied: number): void {
    this.#release(applied);
    const segments = this.#free.splice(0);
    this.#trimmed = this.#trimmed.then(() => this.#keepSome(segments));
  }

  /** Closes all files and removes the spare files. With `remove`, also removes the other files and the empty folder. */
  async close({ remove }: { remove: boolean }): Promise<void> {
    await this.#trimmed;
    for (const segment of [...(this.#current ? [this.#current] : []), ...this.#full, ...this.#free])
      await (remove ? this.#discard(segment) : closeFile(segment.fd));
    for (const segment of this.#spare) await this.#discard(segment);
    if (remove) await promisify(rmdir)(this.folder).catch(() => {});
  }

  /** Moves applied segments to the list of free segments, which can be overwritten. */
  #release(applied: number): void {
    this.#free.push(...this.#full.filter(({ sequence }) => sequence <= applied));
    this.#full = this.#full.filter(({ sequence }) => sequence > applied);
  }

  async #next(): Promise<Segment | undefined> {
    this.#current = (await this.#pick(this.#free)) ?? (await this.#resume());
    if (!this.#current && this.#full.length < this.#deps.maxSegments) this.#current = await this.#create();
    return this.#current && startOver(this.#current);
  }

  /**
   * Removes segments from the end of the list until one of them has its file in place, and returns this segment. Frames
   * written to a removed or replaced file would be lost.
   */
  async #pick(segments: Segment[]): Promise<Segment | undefined> {
    for (let segment = segments.pop(); segment; segment = segments.pop()) {
      if (isInPlace(segment)) return segment;
      await this.#discard(segment);
    }
    return undefined;
  }

  async #create(): Promise<Segment> {
    await promisify(mkdir)(this.folder, { recursive: true, mode: 0o700 });
    const file = this.#nextFile();
    const header = newHeader(this.#deps.database);
    const fd = await openWithHeader(file, header);
    const { ino } = fstatSync(fd, { bigint: true });
    return { file, fd, inode: ino, size: FRAMES_AT, salt: header.salt, sequence: 0 };
  }

  /**
   * Returns the next unused file name. Existing files are never overwritten, because they might belong to another
   * database.
   */
  #nextFile(): string {
    while (existsSync(journalFile(this.folder, this.#created))) this.#created++;
    return journalFile(this.folder, this.#created++);
  }

  async #resume(): Promise<Segment | undefined> {
    await this.#trimmed;
    const segment = await this.#pick(this.#spare);
    if (!segment) return undefined;
    try {
      await moveTo(segment, this.#nextFile());
      await syncFolder(this.folder);
      return segment;
    } catch (error) {
      // If only the sync of the folder failed, the file already has its new name. The next attempt renames the file
      // again.
      this.#spare.push(segment);
      throw error;
    }
  }

  async #keepSome(segments: readonly Segment[]): Promise<void> {
    for (const segment of segments) {
      const isKept = this.#spare.length < this.#deps.spareSegments && isInPlace(segment);
      await (isKept ? this.#keep(segment).catch(() => this.#discard(segment)) : this.#discard(segment));
    }
  }

  async #keep(segment: Segment): Promise<void> {
    await moveTo(segment, spareFile(segment.file));
    this.#spare.push(segment);
  }

  /** Closes and removes an applied segment. If removing the file fails, the next start removes the file. */
  async #discard(segment: Segment): Promise<void> {
    const { fd, file } = segment;
    if (isInPlace(segment)) await promisify(rm)(file, { force: true }).catch(() => {});
    else this.#deps.gone(file);
    await closeFile(fd).catch(() => {});
  }
}

function startOver(segment: Segment): Segment {
  segment.size = FRAMES_AT;
  return segment;
}

async function moveTo(segment: Segment, file: string): Promise<void> {
  await renameFile(segment.file, file);
  segment.file = file;
}

/**
 * Returns false if the file was removed or replaced. Data written to such a file would be missing at the next start.
 */
function isInPlace({ file, inode }: Segment): boolean {
  try {
    return statSync(file, { bigint: true }).ino === inode;
  } catch {
    return false;
  }
}

/**
 * Creates a file under a temporary name. The file is renamed after its header is synced, so that no file without a
 * header has the final name.
 */
async function openWithHeader(file: string, header: JournalHeader): Promise<number> {
  const unfinished = unfinishedFile(file);
  const fd = await createSynced(unfinished);
  try {
    await writeSynced(fd, headerBytes(header), 0);
    await syncFile(fd);
    await renameFile(unfinished, file);
    const folder = dirname(file);
    for (const each of [folder, dirname(folder)]) await syncFolder(each);
    return fd;
  } catch (error) {
    await closeFile(fd);
    // Both files are removed, because each attempt on a full disk would otherwise leave a file behind.
    for (const each of [unfinished, file]) await promisify(rm)(each, { force: true });
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const fd = await openFile(folder, 'r');
  try {
    await syncFile(fd);
  } finally {
    await closeFile(fd);
  }
}

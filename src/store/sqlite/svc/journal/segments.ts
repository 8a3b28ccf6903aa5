import { close, existsSync, fstatSync, fsync, mkdir, open, rename, rm, rmdir, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { createSynced, journalFile, spareFile, unfinishedFile, writeSynced } from './files.ts';
import { FRAMES_AT, headerBytes, type JournalHeader, newHeader } from './header.ts';

/**
 * A journal file. It is written from the end of its header up to `size`, and reused once all of it is
 * applied.
 */
export interface Segment {
  file: string;
  fd: number;
  /** Inode of the open file; its name may point to another file. */
  inode: bigint;
  /** Offset of the next frame. */
  size: number;
  salt: Buffer;
  /** Sequence of its last frame. */
  sequence: number;
}

export interface SegmentOptions {
  /** Frame bytes after which a segment is full. */
  segmentBytes: number;
  maxSegments: number;
  /** Number of segments kept for the next burst, besides the current one. */
  spareSegments: number;
}

export interface SegmentsDeps extends SegmentOptions {
  /** Id of the database that owns the journal. */
  database: Buffer;
  /**
   * Called when a file's name no longer points to it. Its content is applied, and it is not written again.
   */
  gone(file: string): void;
}

export interface Segments {
  readonly folder: string;
  /**
   * Returns the segment to write to; undefined while all segments are full and not applied. Throws system
   * errors.
   */
  writable(applied: number): Segment | Promise<Segment | undefined>;
  /**
   * Frees disk space after a burst. Kept segments speed up the next one: syncing allocated blocks takes half
   * the time.
   */
  trim(applied: number): void;
  /**
   * Closes all files and removes the spare ones; with `remove`, also the others, and the folder if it is
   * empty.
   */
  close(options: { remove: boolean }): Promise<void>;
}

const [openFile, closeFile, syncFile] = [promisify(open), promisify(close), promisify(fsync)];
const renameFile = promisify(rename);

/** Journal files of one process and database; created at the first write. */
export function createSegments(
  folder: string,
  { database, gone, segmentBytes, maxSegments, spareSegments }: SegmentsDeps,
): Segments {
  let current: Segment | undefined;
  let full: Segment[] = [];
  const free: Segment[] = [];
  /** Renamed, so that neither a start nor a backup reads them. */
  const spare: Segment[] = [];
  let made = 0;
  let trimmed: Promise<void> = Promise.resolve();

  /** Applied segments may be overwritten. */
  function release(applied: number): void {
    free.push(...full.filter(({ sequence }) => sequence <= applied));
    full = full.filter(({ sequence }) => sequence > applied);
  }

  async function next(): Promise<Segment | undefined> {
    current = (await pick(free)) ?? (await resume());
    if (!current && full.length < maxSegments) current = await make();
    return current && startOver(current);
  }

  /**
   * The last segment whose name still points to it; writes to any other would be lost when its descriptor
   * closes.
   */
  async function pick(segments: Segment[]): Promise<Segment | undefined> {
    for (let segment = segments.pop(); segment; segment = segments.pop()) {
      if (isInPlace(segment)) return segment;
      await discard(segment);
    }
    return undefined;
  }

  async function make(): Promise<Segment> {
    await promisify(mkdir)(folder, { recursive: true, mode: 0o700 });
    const file = nextFile();
    const header = newHeader(database);
    const fd = await openWithHeader(file, header);
    const { ino } = fstatSync(fd, { bigint: true });
    return { file, fd, inode: ino, size: FRAMES_AT, salt: header.salt, sequence: 0 };
  }

  /** Skips names that exist: such files are not ours. */
  function nextFile(): string {
    while (existsSync(journalFile(folder, made))) made++;
    return journalFile(folder, made++);
  }

  async function resume(): Promise<Segment | undefined> {
    await trimmed;
    const segment = await pick(spare);
    if (!segment) return undefined;
    try {
      await moveTo(segment, nextFile());
      await syncFolder(folder);
      return segment;
    } catch (error) {
      // The next attempt continues from the current name.
      spare.push(segment);
      throw error;
    }
  }

  async function keepSome(segments: readonly Segment[]): Promise<void> {
    for (const segment of segments) {
      const isKept = spare.length < spareSegments && isInPlace(segment);
      await (isKept ? keep(segment).catch(() => discard(segment)) : discard(segment));
    }
  }

  async function keep(segment: Segment): Promise<void> {
    await moveTo(segment, spareFile(segment.file));
    spare.push(segment);
  }

  /** All of it is applied; if removing it fails, the next start removes it. */
  async function discard(segment: Segment): Promise<void> {
    const { fd, file } = segment;
    if (isInPlace(segment)) await promisify(rm)(file, { force: true }).catch(() => {});
    else gone(file);
    await closeFile(fd).catch(() => {});
  }

  return {
    folder,
    writable(applied) {
      const isApplied = current !== undefined && current.sequence <= applied;
      if (current && isApplied && isInPlace(current)) return startOver(current);
      if (current && !isApplied && current.size - FRAMES_AT < segmentBytes) return current;
      if (current) full.push(current);
      current = undefined;
      release(applied);
      return next();
    },
    trim(applied) {
      release(applied);
      const segments = free.splice(0);
      trimmed = trimmed.then(() => keepSome(segments));
    },
    async close({ remove }) {
      await trimmed;
      for (const segment of [...(current ? [current] : []), ...full, ...free])
        await (remove ? discard(segment) : closeFile(segment.fd));
      for (const segment of spare) await discard(segment);
      if (remove) await promisify(rmdir)(folder).catch(() => {});
    },
  };
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
 * The file may have been removed or replaced: the descriptor still works, but the next start would not find
 * the data.
 */
function isInPlace({ file, inode }: Segment): boolean {
  try {
    return statSync(file, { bigint: true }).ino === inode;
  } catch {
    return false;
  }
}

/** Names the file only after its header is synced; the name and the header both survive a power cut. */
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
    // Otherwise each delivery would leave a file behind on a full disk.
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

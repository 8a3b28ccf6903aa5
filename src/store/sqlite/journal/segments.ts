import { close, existsSync, fstatSync, fsync, mkdir, open, rename, rm, rmdir, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { createSynced, journalFile, spareFile, unfinishedFile, writeSynced } from './files.ts';
import { FRAMES_AT, headerBytes, type JournalHeader, newHeader } from './header.ts';

/** A file of the journal, written from behind its header to `size`, and over again once all of it is applied. */
export interface Segment {
  file: string;
  fd: number;
  /** Of the file, whatever is under its name by now. */
  inode: bigint;
  /** Where the next frame goes. */
  size: number;
  salt: Buffer;
  /** Of its last frame. */
  sequence: number;
}

export interface SegmentOptions {
  /** A segment that has so much behind its header is full. */
  segmentBytes: number;
  mostSegments: number;
  /** Beside the one in use, so many stay for the next burst. */
  keptSegments: number;
}

export interface SegmentsDeps extends SegmentOptions {
  /** That of the database whose journal it is. */
  database: Buffer;
  /** Told of a file that is no more under its name. All of it is applied, and nothing is written to it from here on. */
  gone(file: string): void;
}

export interface Segments {
  readonly folder: string;
  /** The one to write to; undefined while all are full and none may be written over. Throws what the system says. */
  writable(applied: number): Segment | Promise<Segment | undefined>;
  /** Gives the disk back what a large burst took. What stays spares the next one: blocks that are there already are synced in half the time. */
  trim(applied: number): void;
  /** Closes all, and removes the spare ones; with `remove`, the other files go too, and their folder when nobody keeps anything else in it. */
  close(options: { remove: boolean }): Promise<void>;
}

const [openFile, closeFile, syncFile] = [promisify(open), promisify(close), promisify(fsync)];
const renameFile = promisify(rename);

/** The files of one process's journal of this database, none of them there before the first write. */
export function createSegments(
  folder: string,
  { database, gone, segmentBytes, mostSegments, keptSegments }: SegmentsDeps,
): Segments {
  let current: Segment | undefined;
  let full: Segment[] = [];
  const free: Segment[] = [];
  /** Under a name that neither a start nor a backup reads. */
  const spare: Segment[] = [];
  let made = 0;
  let trimmed: Promise<void> = Promise.resolve();

  /** What is applied need not be there any more. */
  function release(applied: number): void {
    free.push(...full.filter(({ sequence }) => sequence <= applied));
    full = full.filter(({ sequence }) => sequence > applied);
  }

  async function next(): Promise<Segment | undefined> {
    current = (await pick(free)) ?? (await resume());
    if (!current && full.length < mostSegments) current = await make();
    return current && startOver(current);
  }

  /** The last of them that is where it was: what is written to another would be lost with its descriptor. */
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

  /** What somebody else put here meanwhile is not ours to write over. */
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
      // The next try begins where it is now.
      spare.push(segment);
      throw error;
    }
  }

  async function keepSome(segments: readonly Segment[]): Promise<void> {
    for (const segment of segments) {
      const isKept = spare.length < keptSegments && isInPlace(segment);
      await (isKept ? keep(segment).catch(() => discard(segment)) : discard(segment));
    }
  }

  async function keep(segment: Segment): Promise<void> {
    await moveTo(segment, spareFile(segment.file));
    spare.push(segment);
  }

  /** All of it is applied: one that cannot be removed is so by the next start. */
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

/** Somebody may have removed it, or put another file or folder in its place: it is ours all the same, but no start would find it. */
function isInPlace({ file, inode }: Segment): boolean {
  try {
    return statSync(file, { bigint: true }).ino === inode;
  } catch {
    return false;
  }
}

/** A file has its name once its header is on the disk, and both are there after a power cut too. */
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
    // On a full disk each delivery would leave another.
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

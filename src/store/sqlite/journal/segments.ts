import { randomBytes } from 'node:crypto';
import { close, constants, fsync, mkdir, open, rm, unlink } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { journalFile } from './files.ts';
import { SALT_BYTES } from './frame.ts';

/** A file of the journal, written from its start to `size`, and over again once all of it is applied. */
export interface Segment {
  file: string;
  fd: number;
  /** Where the next frame goes. */
  size: number;
  /** Of this turn. */
  salt: Buffer;
  /** Of its last frame. */
  sequence: number;
}

export interface SegmentOptions {
  /** A segment that has reached this is full. */
  segmentBytes: number;
  mostSegments: number;
}

export interface Segments {
  readonly folder: string;
  /** The one to write to; undefined while all are full and none may be written over. Throws what the system says. */
  writable(applied: number): Segment | Promise<Segment | undefined>;
  /** Gives the disk back what a burst took. The one in use stays: blocks that are there already are synced in half the time. */
  trim(applied: number): void;
  /** Closes all; with `remove`, their folder goes too. */
  close(options: { remove: boolean }): Promise<void>;
}

const [openFile, closeFile, syncFile] = [promisify(open), promisify(close), promisify(fsync)];

/** The files of one process's journal, none of them there before the first write. */
export function createSegments(folder: string, { segmentBytes, mostSegments }: SegmentOptions): Segments {
  let current: Segment | undefined;
  let full: Segment[] = [];
  const free: Segment[] = [];
  let made = 0;

  /** What is applied need not be there any more. */
  function release(applied: number): void {
    free.push(...full.filter(({ sequence }) => sequence <= applied));
    full = full.filter(({ sequence }) => sequence > applied);
  }

  async function next(): Promise<Segment | undefined> {
    current = free.pop() ?? (full.length < mostSegments ? await make() : undefined);
    return current && startOver(current);
  }

  async function make(): Promise<Segment> {
    await promisify(mkdir)(folder, { recursive: true, mode: 0o700 });
    const file = journalFile(folder, made);
    const fd = await openFile(file, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o600);
    try {
      // The file's own name, and that of the folder, are to be there after a power cut too.
      for (const each of [folder, dirname(folder)]) await syncFolder(each);
    } catch (error) {
      await closeFile(fd);
      throw error;
    }
    made++;
    return { file, fd, size: 0, salt: Buffer.alloc(0), sequence: 0 };
  }

  return {
    folder,
    writable(applied) {
      if (current && current.size > 0 && current.sequence <= applied) return startOver(current);
      if (current && current.size < segmentBytes) return current;
      if (current) full.push(current);
      current = undefined;
      release(applied);
      return next();
    },
    trim(applied) {
      release(applied);
      for (const { fd, file } of free.splice(0)) close(fd, () => unlink(file, () => {}));
    },
    async close({ remove }) {
      for (const { fd } of [...(current ? [current] : []), ...full, ...free]) await closeFile(fd);
      if (remove) await promisify(rm)(folder, { recursive: true, force: true });
    },
  };
}

function startOver(segment: Segment): Segment {
  segment.size = 0;
  segment.salt = randomBytes(SALT_BYTES);
  return segment;
}

async function syncFolder(folder: string): Promise<void> {
  const fd = await openFile(folder, 'r');
  try {
    await syncFile(fd);
  } finally {
    await closeFile(fd);
  }
}

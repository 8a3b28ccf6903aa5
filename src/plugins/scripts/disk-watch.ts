import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { messageOf } from '../../kit/errors/errors.ts';
import { systemClock } from '../../kit/time/clock.ts';

const WATCH_MS = 250;
/** A walk of a large folder is followed by a pause of this many times its duration. */
const PAUSE_FACTOR = 4;

export interface FolderLimits {
  bytes: number;
  files: number;
}

/** A path of more levels can be longer than the kernel accepts. */
const MAX_DEPTH = 64;
const MAX_SHOWN_CHARS = 100;
/** Unit of `blocks`. A sparse file takes less space on the disk than its size. */
const BLOCK_BYTES = 512;
const SLASH = Buffer.from('/');

const LIMITS: FolderLimits = { bytes: 1024 * 1024 * 1024, files: 50_000 };

interface Folder {
  path: Buffer;
  /** Number of folders above it, without those of the machine. */
  depth: number;
}

export interface DiskWatchDeps {
  folder: string;
  onOver(what: string): void;
  /** Returns a further fault that ends the script, if there is one. */
  check(): Promise<string | undefined>;
  limits?: FolderLimits;
}

/** Polls the size of a script's working folder. Returns the function that stops it. */
export function watchDisk({ folder, onOver, check, limits = LIMITS }: DiskWatchDeps): () => void {
  let isStopped = false;
  let stopTimer: () => void;
  async function look(): Promise<void> {
    const startedAt = systemClock.monotonic();
    const fault = (await check()) ?? (await folderFault(folder, limits, () => isStopped));
    if (isStopped) return;
    if (fault !== undefined) return onOver(fault);
    next(Math.max(WATCH_MS, (systemClock.monotonic() - startedAt) * PAUSE_FACTOR));
  }
  function next(ms: number): void {
    stopTimer = systemClock.after(ms, () => void look());
  }
  next(WATCH_MS);
  return () => {
    isStopped = true;
    stopTimer();
  };
}

/**
 * Returns why a folder must not stay as it is, or undefined. Files that vanish meanwhile do not count. Names are bytes,
 * because names that are not UTF-8 would not be found again as text.
 */
async function folderFault(
  root: string,
  limits: FolderLimits,
  isStopped: () => boolean,
): Promise<string | undefined> {
  const folders: Folder[] = [{ path: Buffer.from(root), depth: 0 }];
  let files = 0;
  let bytes = 0;
  for (let folder = folders.pop(); folder !== undefined && !isStopped(); folder = folders.pop()) {
    const { path: parent, depth } = folder;
    try {
      for await (const entry of entriesOf(parent)) {
        const path = Buffer.concat([parent, SLASH, entry.name]);
        if (++files > limits.files) return `wrote more than ${limits.files} files`;
        if (!entry.isDirectory()) bytes += ((await unlessGone(lstat(path)))?.blocks ?? 0) * BLOCK_BYTES;
        else if (depth >= MAX_DEPTH) return `nested its folders more than ${MAX_DEPTH} levels deep`;
        else folders.push({ path, depth: depth + 1 });
        if (bytes > limits.bytes) return `wrote more than ${limits.bytes / 1024 ** 2} MB of files`;
      }
    } catch (error) {
      const { code = messageOf(error) } = error as NodeJS.ErrnoException;
      const shown = parent.toString().slice(root.length + 1, root.length + 1 + MAX_SHOWN_CHARS);
      return `has files whose size cannot be read (${code} in /workspace/${shown})`;
    }
  }
  return undefined;
}

async function* entriesOf(folder: Buffer): AsyncGenerator<Dirent<Buffer>> {
  const opened = await unlessGone(opendir(folder, { encoding: 'buffer' as BufferEncoding }));
  // The types of Node lack names as bytes here.
  if (opened) yield* opened as unknown as AsyncIterable<Dirent<Buffer>>;
}

/** Resolves with undefined if a path vanished, or is no folder any more. Any other error could hide files. */
async function unlessGone<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

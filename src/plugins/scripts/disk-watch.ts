import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../kit/time/clock.ts';

const WATCH_MS = 250;
/** A walk of a large folder is followed by a pause of this many times its duration. */
const PAUSE_FACTOR = 4;

export interface FolderLimits {
  bytes: number;
  files: number;
}

const LIMITS: FolderLimits = { bytes: 1024 * 1024 * 1024, files: 50_000 };

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

/** Returns why a folder is too large, or undefined. Files that vanish meanwhile do not count. */
async function folderFault(
  root: string,
  limits: FolderLimits,
  isStopped: () => boolean,
): Promise<string | undefined> {
  const folders = [root];
  let files = 0;
  let bytes = 0;
  for (let folder = folders.pop(); folder !== undefined && !isStopped(); folder = folders.pop()) {
    for await (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (++files > limits.files) return `wrote more than ${limits.files} files`;
      if (entry.isDirectory()) folders.push(path);
      else bytes += await bytesOf(path);
      if (bytes > limits.bytes) return `wrote more than ${limits.bytes / 1024 ** 2} MB of files`;
    }
  }
  return undefined;
}

async function* entriesOf(folder: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(folder);
  } catch {
    // The script has removed the folder, or made it unreadable.
  }
}

/** Returns the space of a file on the disk. A sparse file takes less than its size. */
async function bytesOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).blocks * 512;
  } catch {
    return 0;
  }
}

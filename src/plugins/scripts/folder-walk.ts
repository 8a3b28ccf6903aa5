import { type Dirent, lstatSync, opendirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../../kit/errors/errors.ts';

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
/** Time for which a walk keeps the event loop. Calls that block take a fifth of the processor time of others. */
const SLICE_MS = 3;

/** A folder on this machine, and its path in the sandbox. */
export interface Root {
  path: string;
  shownAs: string;
}

interface Folder {
  /** Names are bytes, because names that are not UTF-8 would not be found again as text. */
  path: Buffer;
  /** Number of folders above it, up to its root. */
  depth: number;
  root: Root;
}

/** Adds up the sizes of folders, once. Files that vanish meanwhile do not count. */
export class FolderWalk {
  readonly #limits: FolderLimits;
  readonly #folders: Folder[];
  #files = 0;
  #bytes = 0;

  constructor(roots: readonly Root[], limits: FolderLimits) {
    this.#limits = limits;
    this.#folders = roots.map((root) => ({ path: Buffer.from(root.path), depth: 0, root }));
  }

  /** Returns why the folders must not stay as they are, or undefined. */
  async fault(isStopped: () => boolean): Promise<string | undefined> {
    let sliceEndsAt = performance.now() + SLICE_MS;
    for (let folder = this.#folders.pop(); folder !== undefined; folder = this.#folders.pop()) {
      try {
        for (const entry of entriesOf(folder.path)) {
          const fault = this.#count(entry, folder);
          if (fault !== undefined || isStopped()) return fault;
          if (performance.now() < sliceEndsAt) continue;
          await nextTurn();
          sliceEndsAt = performance.now() + SLICE_MS;
        }
      } catch (error) {
        return unreadable(folder, error);
      }
    }
    return undefined;
  }

  #count(entry: Dirent<Buffer>, { path: parent, depth, root }: Folder): string | undefined {
    const { files, bytes } = this.#limits;
    const path = Buffer.concat([parent, SLASH, entry.name]);
    if (++this.#files > files) return `wrote more than ${files} files`;
    if (entry.isDirectory()) {
      if (depth >= MAX_DEPTH) return `nested its folders more than ${MAX_DEPTH} levels deep`;
      this.#folders.push({ path, depth: depth + 1, root });
      return undefined;
    }
    this.#bytes += (unlessGone(() => lstatSync(path))?.blocks ?? 0) * BLOCK_BYTES;
    return this.#bytes > bytes ? `wrote more than ${bytes / 1024 ** 2} MB of files` : undefined;
  }
}

function unreadable({ path, root }: Folder, error: unknown): string {
  const { code = messageOf(error) } = error as NodeJS.ErrnoException;
  const shown = path.toString().slice(root.path.length + 1, root.path.length + 1 + MAX_SHOWN_CHARS);
  return `has files whose size cannot be read (${code} in ${root.shownAs}/${shown})`;
}

function* entriesOf(folder: Buffer): Generator<Dirent<Buffer>> {
  const opened = unlessGone(() => opendirSync(folder, { encoding: 'buffer' as BufferEncoding }));
  if (!opened) return;
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync())
      // The types of Node lack names as bytes here.
      yield entry as unknown as Dirent<Buffer>;
  } finally {
    opened.closeSync();
  }
}

/** Returns undefined if a path vanished, or is no folder any more. Any other error could hide files. */
function unlessGone<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../kit/random.ts';

export interface ObjectFiles {
  /** A new file of that content, on disk when it settles; returns its name. Throws system errors. */
  write(data: Uint8Array): Promise<string>;
  /** The row of a file that `write` made is in the database, or will never be. */
  settled(file: string): void;
  read(file: string): Promise<Uint8Array>;
  /** Silent when the file is not there. */
  remove(file: string): Promise<void>;
  /** Removes what a crash left behind: files that `isKnown` does not know. */
  sweep(isKnown: (file: string) => Promise<boolean>): Promise<void>;
}

/** Files in 256 folders, so that none of them grows too large to list. A name is all that is chosen here. */
export function objectFiles(folder: string, random: Random): ObjectFiles {
  const unsettled = new Set<string>();
  // A name begins with the time it was made at and ends by chance.
  const folderOf = (file: string): string => join(folder, file.slice(-2));
  const pathOf = (file: string): string => join(folderOf(file), file);

  return {
    async write(data) {
      const file = random.uuid();
      const parent = folderOf(file);
      unsettled.add(file);
      try {
        await mkdir(parent, { recursive: true, mode: 0o700 });
        const handle = await open(pathOf(file), 'wx', 0o600);
        try {
          await handle.writeFile(data);
          await handle.sync();
        } finally {
          await handle.close();
        }
        await syncFolder(parent);
        return file;
      } catch (error) {
        await rm(pathOf(file), { force: true });
        unsettled.delete(file);
        throw error;
      }
    },
    settled: (file) => void unsettled.delete(file),
    read: (file) => readFile(pathOf(file)),
    remove: (file) => rm(pathOf(file), { force: true }),
    async sweep(isKnown) {
      for (const part of await namesIn(folder)) {
        for (const file of await namesIn(join(folder, part))) {
          // Asked in this order: a file that was settled meanwhile is known by now.
          if (unsettled.has(file) || (await isKnown(file))) continue;
          await rm(join(folder, part, file), { force: true });
        }
      }
    },
  };
}

/** The new name itself must survive a power cut, not only the bytes it names. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}

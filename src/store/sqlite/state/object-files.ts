import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../../kit/security/random.ts';

export interface ObjectFiles {
  /**
   * Writes a new file under a generated name. Resolves with the name once the file is synced. Rejects with system
   * errors.
   */
  write(data: Uint8Array): Promise<string>;
  /** Records that the insert of the file's row has succeeded or failed. Until this call, `sweep` keeps the file. */
  settled(file: string): void;
  read(file: string): Promise<Uint8Array>;
  remove(file: string): Promise<void>;
  /**
   * Removes files that have no row, such as files written just before a crash. `isKnown` returns whether a file has a
   * row.
   */
  sweep(isKnown: (file: string) => Promise<boolean>): Promise<void>;
}

/** Stores files with generated names in 256 folders, so that no folder grows too large. */
export function objectFiles(folder: string, random: Random): ObjectFiles {
  const unsettled = new Set<string>();
  // The first characters of a UUID version 7 are a timestamp. Only the last characters are evenly distributed.
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
          // The checks must run in this order. If a file leaves `unsettled` between the checks, `isKnown` already finds
          // its row.
          if (unsettled.has(file) || (await isKnown(file))) continue;
          await rm(join(folder, part, file), { force: true });
        }
      }
    },
  };
}

/** Syncs a folder. Without this sync, a power failure could lose the directory entry of a new file. */
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

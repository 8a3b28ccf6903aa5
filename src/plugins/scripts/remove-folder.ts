import { randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { chmod, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';

/** Removes a folder of scripts. They can have taken away its rights, or nested it deeper than a path can be. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await removeByLevels(Buffer.from(folder));
  }
}

/** Removes a folder level by level. Each level is moved to the top first, so all paths stay short. */
async function removeByLevels(root: Buffer): Promise<void> {
  await chmod(root, 0o700);
  for (let folders = await removeFiles(root); folders.length > 0; folders = await removeFiles(root)) {
    for (const folder of folders) {
      await chmod(folder, 0o700);
      for (const inner of await removeFiles(folder)) {
        // A folder can be moved only with the right to write to it.
        await chmod(inner, 0o700);
        await rename(inner, pathIn(root, Buffer.from(randomUUID())));
      }
      await rmdir(folder);
    }
  }
  await rmdir(root);
}

/** Removes the files of a folder, and returns the paths of its folders. Links are removed, not followed. */
async function removeFiles(folder: Buffer): Promise<Buffer[]> {
  const entries: Dirent<Buffer>[] = await readdir(folder, { withFileTypes: true, encoding: 'buffer' });
  const folders: Buffer[] = [];
  for (const entry of entries) {
    const path = pathIn(folder, entry.name);
    if (entry.isDirectory()) folders.push(path);
    else await unlink(path);
  }
  return folders;
}

/** Names are bytes, because names that are not UTF-8 would not be found again as text. */
const pathIn = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, Buffer.from('/'), name]);

import { randomUUID } from 'node:crypto';
import { type Dirent, existsSync } from 'node:fs';
import { chmod, readdir, rename, rmdir, unlink } from 'node:fs/promises';

/**
 * Removes a folder of scripts, if it exists. Scripts can have taken away its rights, or nested it deeper than a path can
 * be. Node's `rm` fails then, and goes on to remove files after it has failed. So each level is moved to the top before
 * it is removed, which keeps all paths short.
 */
export async function removeFolder(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const root = Buffer.from(folder);
  await chmod(root, 0o700);
  for (let folders = await removeFiles(root); folders.length > 0; folders = await removeFiles(root)) {
    for (const level of folders) {
      await chmod(level, 0o700);
      for (const inner of await removeFiles(level)) {
        // A folder can be moved only with the right to write to it.
        await chmod(inner, 0o700);
        await rename(inner, pathIn(root, Buffer.from(randomUUID())));
      }
      await rmdir(level);
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

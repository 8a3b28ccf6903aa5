import { randomUUID } from 'node:crypto';
import { constants, type Dirent, existsSync } from 'node:fs';
import { chmod, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';

/** Linux opens folders with this flag without the right to read them. Node has no constant for it. */
const O_PATH = 0o10000000;

/**
 * Removes a folder of scripts, if it exists. Scripts can have taken away its rights, or nested it deeper than a path can
 * be. Node's `rm` fails then, and goes on to remove files after it has failed. So each level is moved to the top before
 * it is removed, which keeps all paths short.
 */
export async function removeFolder(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  await removeContent(Buffer.from(folder));
  await rmdir(folder);
}

function removeContent(folder: Buffer): Promise<void> {
  return inFolder(folder, async (root) => {
    for (let levels = await removeFiles(root); levels.length > 0; levels = await removeFiles(root)) {
      for (const level of levels) {
        await moveFolders(level, root);
        await rmdir(level);
      }
    }
  });
}

/** Removes the files of a folder, and moves its folders into another one. */
function moveFolders(folder: Buffer, target: Buffer): Promise<void> {
  return inFolder(folder, async (level) => {
    for (const inner of await removeFiles(level)) {
      // A folder can be moved only with the right to write to it.
      await inFolder(inner, () => rename(inner, pathIn(target, Buffer.from(randomUUID()))));
    }
  });
}

/**
 * Opens a folder and gives its owner all rights. `work` gets a path that leads to this folder, whatever is at its former
 * path meanwhile. Throws for a link, which could lead to a folder of the machine.
 */
async function inFolder(folder: Buffer, work: (path: Buffer) => Promise<void>): Promise<void> {
  const handle = await open(folder, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const path = Buffer.from(`/proc/self/fd/${handle.fd}`);
    await chmod(path, 0o700);
    await work(path);
  } finally {
    await handle.close();
  }
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

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the contents of all files below a folder, one character for each byte, to search them for leaks. */
export async function textsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1')),
  );
}

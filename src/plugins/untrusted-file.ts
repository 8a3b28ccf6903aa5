import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf } from '../kit/errors/errors.ts';

/**
 * Reads a file of untrusted origin. Rejects symbolic links and pipes. Checks the opened file instead of the path,
 * because a path can later point to another file.
 */
export async function readUntrustedFile(path: string, name: string, maxBytes: number): Promise<string> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: unknown) => {
    if (codeOf(error) !== 'ELOOP') throw error;
    throw new Error(`${name} is a symbolic link; replace it by the file itself.`);
  });
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${name} is not a file.`);
    if (found.size > maxBytes) throw new Error(`${name} has ${found.size} bytes; the limit is ${maxBytes}.`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

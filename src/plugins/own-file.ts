import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf } from '../kit/errors.ts';

/**
 * The text of a file of untrusted origin. A link would show what it leads to, and a pipe would be waited for without
 * end: both are refused by the open descriptor, so that nothing changes between check and read. Throws with the reason.
 */
export async function readOwnFile(path: string, name: string, maxBytes: number): Promise<string> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: unknown) => {
    if (codeOf(error) !== 'ELOOP') throw error;
    throw new Error(`${name} is a symbolic link; put the file itself in its place.`);
  });
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${name} is no file.`);
    if (found.size > maxBytes)
      throw new Error(`${name} has ${found.size} bytes; at most ${maxBytes} are read.`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

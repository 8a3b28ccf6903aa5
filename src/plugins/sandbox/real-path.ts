import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Without links, also of what is not there yet: it may come to be after we looked. */
export async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPathOf(parent), basename(path));
  }
}

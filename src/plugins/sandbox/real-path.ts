import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Resolves links, also in the existing part of a missing path, which may be created later. */
export async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPathOf(parent), basename(path));
  }
}

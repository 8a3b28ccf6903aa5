import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Resolves symbolic links. For a missing path, which may be created later, it resolves the existing parent folders. */
export async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPathOf(parent), basename(path));
  }
}

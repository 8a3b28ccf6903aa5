import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Resolves symbolic links in a path. For a missing path, resolves only its existing parent folders, because the path
 * could be created later.
 */
export async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPathOf(parent), basename(path));
  }
}

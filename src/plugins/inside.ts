import { isAbsolute, relative, sep } from 'node:path';

/** Returns whether `path` equals `folder` or is inside `folder`. Both paths must be absolute real paths. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

import { realpathSync } from 'node:fs';

/**
 * Finds a program in the folders of a PATH and resolves symbolic links. Returns undefined if the program is not found.
 */
export function locate(program: string, path = ''): string | undefined {
  for (const folder of path.split(':').filter(Boolean)) {
    try {
      return realpathSync(`${folder}/${program}`);
    } catch {
      // The program is not in this folder.
    }
  }
  return undefined;
}

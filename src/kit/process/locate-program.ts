import { realpathSync } from 'node:fs';

/** Resolves a program name on a PATH and follows links. Returns undefined if the program is not found. */
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

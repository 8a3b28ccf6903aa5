import { realpathSync } from 'node:fs';

/** The file that a program's name means on a PATH, links followed; undefined where no folder has it. */
export function locate(program: string, path = ''): string | undefined {
  for (const folder of path.split(':').filter(Boolean)) {
    try {
      return realpathSync(`${folder}/${program}`);
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

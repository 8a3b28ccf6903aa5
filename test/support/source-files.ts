import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';

/** The folder `src` of this repository. */
export const SOURCE_ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../src');

/** Every source file below `root`, relative and `/`-separated. */
export function sourceFiles(root: string): string[] {
  return globSync('**/*.{ts,tsx,js,mjs}', { cwd: root }).sort();
}

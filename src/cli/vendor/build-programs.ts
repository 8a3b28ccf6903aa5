import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A path of a program in an import. Minified code also quotes it with backticks. */
const IMPORTED = /(["'`])\.\/(?:chunks\/)?([\w.-]+\.js)\1/g;

/**
 * Returns the entries of the current build and the chunks that they import, relative to the build folder. In a checkout,
 * the folder can also contain chunks of older builds that running programs need.
 */
export function buildPrograms(dist: string): string[] {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path) || !existsSync(join(dist, path))) return;
    reached.add(path);
    for (const [, , name] of readFileSync(join(dist, path), 'utf8').matchAll(IMPORTED))
      visit(existsSync(join(dist, 'chunks', name!)) ? `chunks/${name}` : name!);
  };
  for (const name of readdirSync(dist)) if (name.endsWith('.js')) visit(name);
  return [...reached].sort();
}

import { mkdirSync, readFileSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';
import { isBuilt, packageRoot } from '../../src/kit/files/paths.ts';

const CACHE = join(packageRoot, 'node_modules/.cache/test-programs');
/** Packages that load a binary or are part of the test run. */
const EXTERNAL = [/^node:/, /^[\w-]+:/, 'better-sqlite3', 'sqlite-vec', 'vitest', 'rolldown'];

/**
 * File to start for a program of the tests. With built programs it is a bundle, which starts in half the processor
 * time of the sources; bundling costs as much as four starts.
 */
export async function programFile(source: string): Promise<string> {
  if (!isBuilt) return source;
  mkdirSync(CACHE, { recursive: true });
  // Node's compile cache goes by path, so the bundle keeps its own; another run may be starting it.
  const file = join(CACHE, `${basename(source, '.ts')}.js`);
  const written = `${file}.${process.pid}`;
  const build = await rolldown({
    input: source,
    platform: 'node',
    external: EXTERNAL,
    plugins: [startingBuiltPrograms],
    tsconfig: false,
    onLog: () => {},
  });
  await build.write({ file: written, format: 'esm', codeSplitting: false });
  await build.close();
  renameSync(written, file);
  return file;
}

/** Threads and processes that the program starts come from the build too. */
const startingBuiltPrograms = {
  name: 'starting-built-programs',
  load(id: string): string | null {
    if (id !== join(packageRoot, 'src/kit/files/paths.ts')) return null;
    const code = readFileSync(id, 'utf8').replace(/(export const isBuilt =)[^;]*;/, '$1 true;');
    if (!code.includes('isBuilt = true;'))
      throw new Error(`${id} no longer declares isBuilt as one constant`);
    return code;
  },
};

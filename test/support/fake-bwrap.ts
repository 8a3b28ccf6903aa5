import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tempDir } from './daemon.ts';

/** A `bwrap` of a busy machine: it writes down its arguments, then does as `script` says. */
export async function fakeBwrap(script: string) {
  const folder = await tempDir();
  const calls = join(folder, 'calls');
  await writeFile(calls, '');
  const program = join(folder, 'bwrap');
  await writeFile(program, `#!/bin/sh\necho "$*" >> '${calls}'\n${script}\n`);
  await chmod(program, 0o755);
  return {
    path: `${folder}:${process.env.PATH}`,
    calls: async () => (await readFile(calls, 'utf8')).trim().split('\n'),
  };
}

export const HANGS = 'exec sleep 600';

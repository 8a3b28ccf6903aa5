import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { tempDir } from './daemon.ts';
import { userEnvironment } from './user-environment.ts';

const PARTS = ['bin', 'config', 'docker', 'scripts', 'src', 'tsconfig.json', 'package-lock.json'];

export interface ReleaseOptions {
  version: string;
  /** Changes of source files, as pairs of a text that occurs once and its replacement. */
  edits?: Readonly<Record<string, readonly (readonly [text: string, replacement: string])[]>>;
}

/** Builds a changed copy of this checkout. Resolves with the folder of the copy. */
export async function buildRelease({ version, edits = {} }: ReleaseOptions): Promise<string> {
  const folder = await tempDir();
  await mkdir(folder, { recursive: true });
  for (const part of PARTS) await cp(join(packageRoot, part), join(folder, part), { recursive: true });
  await symlink(join(packageRoot, 'node_modules'), join(folder, 'node_modules'));
  const about = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...about, version }));
  for (const [name, changes] of Object.entries(edits)) await edit(join(folder, name), changes);
  await promisify(execFile)(process.execPath, [join(folder, 'scripts/build.js')], {
    cwd: folder,
    env: userEnvironment(),
  });
  return folder;
}

async function edit(file: string, changes: readonly (readonly [string, string])[]): Promise<void> {
  let source = await readFile(file, 'utf8');
  for (const [text, replacement] of changes) {
    if (source.split(text).length !== 2) throw new Error(`${file} does not contain once: ${text}`);
    source = source.replace(text, () => replacement);
  }
  await writeFile(file, source);
}

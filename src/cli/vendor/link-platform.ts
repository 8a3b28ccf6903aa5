import { lstat, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { publicParts } from '../../kit/paths.ts';

/** Beside npm's packages, which `npm install` leaves alone; bin/svc reads it where the Node on PATH is too old. */
const NODE_NOTE = join('.cache', 'svc-node');

/**
 * Links the platform that runs into a plugin, so that tests run and editors know its types before anything is installed.
 * Part by part: a clone that is itself the project has the data folder beside them, which no plugin may see.
 */
export async function linkPlatform(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  const target = join(modules, 'svc-platform');
  // The platform that runs from there cannot replace itself.
  if (!publicParts.some((part) => dirname(part) === target)) {
    await rm(target, { recursive: true, force: true });
    await mkdir(target, { recursive: true });
    for (const part of publicParts) await symlink(part, join(target, basename(part)));
  }
  await linkProgram(join(modules, '.bin'));
  const note = join(modules, NODE_NOTE);
  await mkdir(dirname(note), { recursive: true });
  await writeFile(note, `${process.execPath}\n`);
}

/** What `npm test` and `npm run validate` start. */
async function linkProgram(programs: string): Promise<void> {
  await mkdir(programs, { recursive: true });
  const path = join(programs, 'svc');
  const isThere = await lstat(path).then(
    () => true,
    () => false,
  );
  if (!isThere) await symlink(join('..', 'svc-platform', 'bin', 'svc'), path);
}

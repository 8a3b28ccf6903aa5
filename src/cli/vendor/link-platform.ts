import { lstat, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { publicParts } from '../../kit/files/paths.ts';

/** Path of the Node binary, read by bin/svc if the Node on PATH is too old. `npm install` keeps this folder. */
const NODE_PATH_FILE = join('.cache', 'svc-node');

/**
 * Links this platform into a plugin, so that tests and editors work before `npm install`. Links single parts, because the
 * package folder of a checkout may contain a data folder that plugins must not see.
 */
export async function linkPlatform(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  const target = join(modules, 'svc-platform');
  // A platform running from that folder cannot replace itself.
  if (!publicParts.some((part) => dirname(part) === target)) {
    await rm(target, { recursive: true, force: true });
    await mkdir(target, { recursive: true });
    for (const part of publicParts) await symlink(part, join(target, basename(part)));
  }
  await linkProgram(join(modules, '.bin'));
  const nodePathFile = join(modules, NODE_PATH_FILE);
  await mkdir(dirname(nodePathFile), { recursive: true });
  await writeFile(nodePathFile, `${process.execPath}\n`);
}

/** Links the program for `npm test` and `npm run validate`. */
async function linkProgram(programs: string): Promise<void> {
  await mkdir(programs, { recursive: true });
  const path = join(programs, 'svc');
  const exists = await lstat(path).then(
    () => true,
    () => false,
  );
  if (!exists) await symlink(join('..', 'svc-platform', 'bin', 'svc'), path);
}

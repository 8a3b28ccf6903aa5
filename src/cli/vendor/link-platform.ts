import { lstat, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { publicParts } from '../../kit/files/paths.ts';

/**
 * File with the path of a suitable Node binary, which bin/svc uses if the Node on PATH is too old. `npm install` does
 * not delete this file.
 */
const NODE_PATH_FILE = join('.cache', 'svc-node');

/**
 * Links this platform into a plugin's `node_modules`, so that tests and editors work before `npm install`. Only public
 * parts are linked, because the package folder can contain platform data.
 */
export async function linkPlatform(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  const target = join(modules, 'svc-platform');
  // If the platform runs from the target folder, replacing that folder would delete the running platform.
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

/** Links the `svc` program, which `npm test` and `npm run validate` of the plugin call. */
async function linkProgram(programs: string): Promise<void> {
  await mkdir(programs, { recursive: true });
  const path = join(programs, 'svc');
  const exists = await lstat(path).then(
    () => true,
    () => false,
  );
  if (!exists) await symlink(join('..', 'svc-platform', 'bin', 'svc'), path);
}

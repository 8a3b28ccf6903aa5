import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { version } from '../../../kit/files/paths.ts';
import { linkPlatform } from '../../vendor/link-platform.ts';
import { vendoredDependency, vendorFolderOf, vendorPlatform } from '../../vendor/vendored-platform.ts';
import { filesOf } from './templates/index.ts';
import type { TemplateParts } from './templates/template.ts';

/**
 * Writes the files of a plugin. Removes the written files on failure, because an incomplete plugin would break the
 * project. Throws STORE_ERROR if writing fails.
 */
export async function writeOrRemove(folder: string, parts: TemplateParts, id: string): Promise<string[]> {
  let created: string | undefined;
  try {
    created = await mkdir(folder, { recursive: true });
    return await writePlugin(folder, parts, id);
  } catch (error) {
    const inside = await readdir(folder).catch(() => []);
    const partial = created === undefined ? inside.map((name) => join(folder, name)) : [created];
    for (const path of partial) await rm(path, { recursive: true, force: true });
    throw new PlatformError('STORE_ERROR', `Cannot write the plugin to ${folder}: ${messageOf(error)}.`, {
      details: { folder, hint: 'Choose another place with --folder.' },
      cause: error,
    });
  }
}

/** Writes the files of a new plugin into a folder, and the platform archive into `vendor`. Returns the file names. */
export async function writePlugin(
  folder: string,
  parts: TemplateParts,
  id: string,
  vendor: string = vendorFolderOf(folder),
): Promise<string[]> {
  await vendorPlatform(vendor);
  const files = filesOf(parts, id, { version, dependency: vendoredDependency(folder, vendor) });
  for (const [file, content] of Object.entries(files)) {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { flag: 'wx' });
  }
  await linkPlatform(folder);
  return Object.keys(files);
}

/** Throws CONFLICT if a folder has files. */
export async function requireEmpty(folder: string): Promise<void> {
  if (!existsSync(folder) || (await readdir(folder)).length === 0) return;
  throw new PlatformError('CONFLICT', `${folder} exists and is not empty.`, {
    details: { folder, hint: 'Choose another folder with --folder.' },
  });
}

import { copyFile, lstat, mkdir, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { INSTALL_LIMITS } from '../../../plugins/index.ts';

/**
 * Copies a plugin's folder without the top-level entries in `skip`. Throws VALIDATION_ERROR for links and devices,
 * because an installed plugin must be self-contained. Throws if the folder exceeds the size limits.
 */
export async function copyFolder(from: string, to: string, skip: ReadonlySet<string>): Promise<void> {
  const folders = [''];
  let files = 0;
  let bytes = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    await mkdir(join(to, folder), { recursive: true });
    for await (const { name } of await opendir(join(from, folder))) {
      const path = join(folder, name);
      if (skip.has(path)) continue;
      const entry = await lstat(join(from, path));
      if (entry.isDirectory()) {
        folders.push(path);
        continue;
      }
      if (!entry.isFile()) throw refused(path, 'is a link or a device; replace it by the file itself');
      bytes += entry.size;
      if (++files > INSTALL_LIMITS.files || bytes > INSTALL_LIMITS.bytes) {
        const { files: most, bytes: size } = INSTALL_LIMITS;
        throw refused(path, `exceeds the limits of a plugin: ${most} files, ${size} bytes`);
      }
      await copyFile(join(from, path), join(to, path));
    }
  }
}

function refused(path: string, why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `${path} ${why}.`, { details: { file: path } });
}

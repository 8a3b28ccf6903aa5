import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ManifestV3 } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';

/** What an installed plugin may be at most, its dependencies included. */
export const INSTALL_LIMITS = {
  files: 50_000,
  bytes: 512 * 1024 * 1024,
  fileBytes: 128 * 1024 * 1024,
  pathChars: 1024,
} as const;

/**
 * One digest over every file of a folder: name, whether it may be executed, content. A file that is added,
 * taken away, renamed or changed gives another one. Throws VALIDATION_ERROR for links, devices and too much of anything.
 */
export async function integrityOf(folder: string): Promise<string> {
  const files = await listFiles(folder);
  const whole = createHash('sha512');
  for (const { path, name, executable } of files) {
    const content = createHash('sha512');
    await pipeline(createReadStream(path), content);
    whole.update(`${JSON.stringify(name)} ${executable ? 'x' : '-'} ${content.digest('base64')}\n`);
  }
  return `sha512-${whole.digest('base64')}`;
}

/** Of the manifest as read, whatever way it is written. */
export function manifestDigest(manifest: ManifestV3): string {
  return `sha256-${createHash('sha256').update(JSON.stringify(manifest)).digest('base64')}`;
}

interface ListedFile {
  path: string;
  /** Relative and `/`-separated. */
  name: string;
  executable: boolean;
}

async function listFiles(root: string): Promise<ListedFile[]> {
  const files: ListedFile[] = [];
  const folders = [root];
  let bytes = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      const name = relative(root, path).split(sep).join('/');
      if (entry.isDirectory()) {
        folders.push(path);
        continue;
      }
      if (!entry.isFile()) throw refused(name, 'is a link or a device; an installed plugin holds files only');
      const { size, mode } = await lstat(path);
      bytes += size;
      files.push({ path, name, executable: (mode & 0o111) !== 0 });
      if (files.length > INSTALL_LIMITS.files)
        throw refused(name, `is one file too many: ${INSTALL_LIMITS.files} are allowed`);
      if (bytes > INSTALL_LIMITS.bytes)
        throw refused(name, `makes the plugin larger than ${INSTALL_LIMITS.bytes} bytes`);
    }
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function refused(name: string, why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `${name} ${why}.`, { details: { file: name } });
}

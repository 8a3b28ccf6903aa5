import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { readTarGz, archiveRefused as refused, type TarEntry } from '../../../kit/files/tar/read.ts';
import { INSTALL_LIMITS, isInside } from '../../../plugins/index.ts';

/**
 * Unpacks an untrusted npm archive into `folder` without the files in `skip`. Drops the first component of each path.
 * Throws VALIDATION_ERROR for links, devices, paths outside the folder, and archives above INSTALL_LIMITS.
 */
export async function unpackTarball(
  archive: string,
  folder: string,
  skip: ReadonlySet<string>,
): Promise<void> {
  const seen = { files: 0, bytes: 0 };
  try {
    for await (const entry of readTarGz(archive)) await unpackEntry(entry, folder, skip, seen);
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    throw refused(`it cannot be read: ${messageOf(error)}`, error);
  }
}

async function unpackEntry(
  { name, type, size, mode, content }: TarEntry,
  folder: string,
  skip: ReadonlySet<string>,
  seen: { files: number; bytes: number },
): Promise<void> {
  if (type !== 'file' && type !== 'folder')
    throw refused(`${quoted(name)} is a ${type}; only files are allowed`);
  const inner = safeName(name);
  seen.bytes += size;
  if (++seen.files > INSTALL_LIMITS.files)
    throw refused(`it contains more than ${INSTALL_LIMITS.files} files`);
  if (size > INSTALL_LIMITS.fileBytes || seen.bytes > INSTALL_LIMITS.bytes) {
    throw refused(`it unpacks to more than ${INSTALL_LIMITS.bytes} bytes`);
  }
  const target = join(folder, inner);
  if (!isInside(resolve(folder), resolve(target)))
    throw refused(`${quoted(name)} is a path outside of the package`);
  if (type === 'folder' || inner === '' || skip.has(inner)) return;
  await mkdir(dirname(target), { recursive: true });
  // The flag `wx` prevents a second archive entry with the same name from replacing a verified file.
  await writeFile(target, content, { flag: 'wx', mode: 0o644 });
  if ((mode & 0o111) !== 0) await chmod(target, 0o755);
}

/** Returns a path relative to the package. Throws for names that could lead outside of the folder on any system. */
function safeName(name: string): string {
  if (name.length > INSTALL_LIMITS.pathChars) throw refused('one of its names is too long');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  const isUnsafe = name.startsWith('/') || /[\0\\]/.test(name) || /^[A-Za-z]:/.test(name);
  if (isUnsafe || parts.includes('..')) throw refused(`${quoted(name)} is a path outside of the package`);
  return parts.slice(1).join('/');
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}

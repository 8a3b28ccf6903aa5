import { createHash, hash } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ManifestV3 } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { systemClock } from '../kit/time/clock.ts';
import { seconds } from '../kit/time/duration.ts';
import { staysBehind } from './package-files.ts';

/** Limits for an installed plugin, including its dependencies. */
export const INSTALL_LIMITS = {
  files: 50_000,
  bytes: 512 * 1024 * 1024,
  fileBytes: 128 * 1024 * 1024,
  pathChars: 1024,
} as const;

/**
 * Returns a digest over the names, executable bits and contents of all files in a folder. Throws VALIDATION_ERROR if
 * the folder contains a link or a device. Also throws if the folder exceeds a limit.
 */
export async function integrityOf(folder: string): Promise<string> {
  return digestOf(await listFiles(folder));
}

/**
 * Returns a digest over the files that are sent to remote hosts. `integrityOf` returns the same digest for the unpacked
 * folder.
 */
export async function packageIntegrityOf(folder: string): Promise<string> {
  return digestOf(await listFiles(folder, staysBehind));
}

/** A function that returns the same digest as `integrityOf`, possibly from a cache. */
export type IntegrityOf = (folder: string) => Promise<string>;

/**
 * Creates a version of `integrityOf` that caches the digest of a folder until a file changes. Recently changed folders
 * are not cached, because file times are coarse. @spec docs/decisions/0048
 */
export function createIntegrityCache(now: () => number = systemClock.now): IntegrityOf {
  const known = new Map<string, { stamp: string; integrity: string }>();
  return async (folder) => {
    const files = await listFiles(folder);
    const stamp = stampOf(files);
    const found = known.get(folder);
    if (found?.stamp === stamp) return found.integrity;
    known.delete(folder);
    const isSettled = files.every(({ ctimeNs }) => ctimeNs < BigInt(now() - SETTLED_MS) * 1_000_000n);
    const integrity = await digestOf(files);
    if (isSettled) known.set(folder, { stamp, integrity });
    return integrity;
  };
}

async function digestOf(files: readonly ListedFile[]): Promise<string> {
  const whole = createHash('sha512');
  for (let at = 0; at < files.length; at += READ_AT_ONCE) {
    const batch = files.slice(at, at + READ_AT_ONCE);
    const contents = await Promise.all(batch.map(contentDigest));
    for (const [index, { name, executable }] of batch.entries())
      whole.update(`${JSON.stringify(name)} ${executable ? 'x' : '-'} ${contents[index]}\n`);
  }
  return `sha512-${whole.digest('base64')}`;
}

/** Returns the digest of a file. Small files are read as a whole, which is ten times as fast as streaming. */
async function contentDigest({ path, size }: ListedFile): Promise<string> {
  if (size <= WHOLE_BYTES) return hash('sha512', await readFile(path), 'base64');
  const content = createHash('sha512');
  await pipeline(createReadStream(path), content);
  return content.digest('base64');
}

function stampOf(files: readonly ListedFile[]): string {
  const whole = createHash('sha512');
  for (const { name, executable, size, ino, mtimeNs, ctimeNs } of files)
    whole.update(`${JSON.stringify(name)} ${executable} ${size} ${ino} ${mtimeNs} ${ctimeNs}\n`);
  return whole.digest('base64');
}

/** Returns a digest of the parsed manifest. The formatting of the manifest file does not affect the digest. */
export function manifestDigest(manifest: ManifestV3): string {
  return `sha256-${createHash('sha256').update(JSON.stringify(manifest)).digest('base64')}`;
}

const READ_AT_ONCE = 16;
const WHOLE_BYTES = 1024 * 1024;
const SETTLED_MS = seconds(2);

interface ListedFile {
  path: string;
  /** Path relative to the plugin's folder, separated by `/`. */
  name: string;
  executable: boolean;
  size: number;
  ino: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
}

async function listFiles(
  root: string,
  isLeftOut: (name: string) => boolean = () => false,
): Promise<ListedFile[]> {
  const files: ListedFile[] = [];
  const folders = [root];
  let bytes = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const nameOf = (entry: Dirent) => relative(root, join(folder!, entry.name)).split(sep).join('/');
    const all = await readdir(folder, { withFileTypes: true });
    const entries = all.filter((entry) => !isLeftOut(nameOf(entry)));
    const found = entries.filter((entry) => !entry.isDirectory());
    for (const entry of entries) if (entry.isDirectory()) folders.push(join(folder, entry.name));
    if (files.length + found.length > INSTALL_LIMITS.files)
      throw refused(nameOf(found[0]!), `exceeds the limit of ${INSTALL_LIMITS.files} files`);
    const odd = found.find((entry) => !entry.isFile());
    if (odd) throw refused(nameOf(odd), 'is a link or a device; an installed plugin may only contain files');
    for (const file of await Promise.all(
      found.map((entry) => statFile(join(folder!, entry.name), nameOf(entry))),
    )) {
      bytes += file.size;
      if (bytes > INSTALL_LIMITS.bytes)
        throw refused(file.name, `makes the plugin larger than ${INSTALL_LIMITS.bytes} bytes`);
      files.push(file);
    }
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function statFile(path: string, name: string): Promise<ListedFile> {
  const { size, mode, ino, mtimeNs, ctimeNs } = await lstat(path, { bigint: true });
  return { path, name, executable: (mode & 0o111n) !== 0n, size: Number(size), ino, mtimeNs, ctimeNs };
}

function refused(name: string, why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `${name} ${why}.`, { details: { file: name } });
}

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { MANIFEST_FILE, type ManifestV3 } from '../contracts/index.ts';
import { isInside } from './inside.ts';
import { declaredWrites } from './permission-sets.ts';

/** Maximum number of watched files per plugin. With this limit, a check for changes takes less than a millisecond. */
const MAX_SOURCE_FILES = 2000;
/** Folders that the check for changes ignores, because tools and running plugins write to these folders. */
const NO_SOURCES = new Set(['node_modules', 'coverage']);
const SOURCE = /\.(?:[cm]?[jt]sx?|json|ya?ml|wasm)$/;
/** Lock file that npm writes at the end of `npm install`. With this file, an installation is detected as one change. */
const INSTALLED = join('node_modules', '.package-lock.json');

/**
 * Returns a stamp that changes when a source file of the plugin is written, added or removed. Ignores hidden files,
 * dependencies and paths that the plugin can write. The stamp of a missing folder is empty.
 */
export function sourceStamp(root: string, loaded?: ManifestV3): string {
  return sourceFiles(root, loaded).map(fileStamp).join('\n');
}

/**
 * Returns a digest of the content of all source files. The digest does not depend on modification times or on the
 * location of the folder.
 */
export async function sourceDigest(root: string, loaded?: ManifestV3): Promise<string> {
  const whole = createHash('sha256');
  for (const path of sourceFiles(root, loaded))
    whole.update(`${relative(root, path)}\n`).update(await readFile(path).catch(() => 'unreadable'));
  return whole.digest('base64');
}

/** Returns the source files that `sourceStamp` and `sourceDigest` read, at most `MAX_SOURCE_FILES`. */
export function sourceFiles(root: string, loaded: ManifestV3 | undefined): string[] {
  const excluded = writablePaths(root, loaded);
  const files: string[] = [];
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (entry.name.startsWith('.') || excluded.some((other) => isInside(other, path))) continue;
      if (entry.isDirectory()) {
        if (!NO_SOURCES.has(entry.name)) folders.push(path);
      } else if (SOURCE.test(entry.name)) files.push(path);
      if (files.length >= MAX_SOURCE_FILES) return files;
    }
  }
  return files.length > 0 ? [...files, join(root, INSTALLED)] : files;
}

/** Returns a stamp that changes when the file is written, replaced or removed. */
export function fileStamp(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${path} ${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}` : '';
}

/**
 * Returns all paths that the plugin can write, and the real paths of these paths. Uses both the loaded manifest and the
 * manifest on disk.
 */
function writablePaths(root: string, loaded: ManifestV3 | undefined): string[] {
  const declared = new Set([...declaredWrites(loaded), ...declaredWrites(manifestOnDisk(root))]);
  return [...declared].flatMap((path) => {
    const absolute = resolve(root, path);
    return [absolute, realPathOrNone(absolute)].filter((one) => one !== undefined);
  });
}

/** Returns the unvalidated manifest, or undefined if the file cannot be read or parsed, for example during an edit. */
function manifestOnDisk(root: string): unknown {
  try {
    return JSON.parse(readFileSync(join(root, MANIFEST_FILE), 'utf8'));
  } catch {
    return undefined;
  }
}

function realPathOrNone(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** Returns the entries of a folder, or an empty list if the folder no longer exists. */
function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { MANIFEST_FILE } from '../contracts/index.ts';
import { isRecord } from '../kit/is-record.ts';
import { isInside } from './inside.ts';

/** Beyond this many files a folder's later files are not watched: a look must stay far below a millisecond per plugin. */
const MAX_SOURCE_FILES = 2000;
/** Written by tools and by plugins themselves while they run. */
const NO_SOURCES = new Set(['node_modules', 'coverage']);
const SOURCE = /\.(?:[cm]?[jt]sx?|json|ya?ml|wasm)$/;
/** npm writes this file last, so a finished `npm install` changes the stamp once. */
const INSTALLED = join('node_modules', '.package-lock.json');

/**
 * Describes the source files of a plugin under development: changes when one is written, added or removed. Hidden files,
 * dependencies and what the plugin itself may write do not count. Empty for a folder that is gone.
 */
export function sourceStamp(root: string): string {
  return sourceFiles(root).map(fileStamp).join('\n');
}

/** The same by content: a file that was only touched, or written with what it held, changes nothing. */
export async function sourceDigest(root: string): Promise<string> {
  const whole = createHash('sha256');
  for (const path of sourceFiles(root))
    whole.update(`${path}\n`).update(await readFile(path).catch(() => 'unreadable'));
  return whole.digest('base64');
}

function sourceFiles(root: string): string[] {
  const excluded = writablePaths(root);
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

/** Changes when the file is written, replaced or removed. */
export function fileStamp(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${path} ${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}` : '';
}

/** As the manifest file on disk has it; a manifest module would have to be run. */
function writablePaths(root: string): string[] {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(root, MANIFEST_FILE), 'utf8'));
    const permissions = isRecord(manifest) ? manifest.permissions : undefined;
    const fs = isRecord(permissions) ? permissions.fs : undefined;
    const write = isRecord(fs) && Array.isArray(fs.write) ? fs.write : [];
    return write.filter((path) => typeof path === 'string').map((path) => resolve(root, path));
  } catch {
    return [];
  }
}

/** None for a folder that disappears meanwhile. */
function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

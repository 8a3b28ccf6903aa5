import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LockFile } from '../contracts/index.ts';
import { codeOf, messageOf, PlatformError } from '../kit/errors/errors.ts';
import { replacePrivateFile } from '../kit/files/replace-file.ts';

const NAME = 'marketplace.lock.json';
const EMPTY: LockFile = { version: 1, revision: 0, plugins: {} };

export function pluginsFolder(dataDir: string): string {
  return join(dataDir, 'plugins');
}

/**
 * Reads the list of installed plugins. Returns an empty list if the file is missing. Throws CONFIG_PARSE_ERROR if the
 * file is damaged.
 */
export async function readLockFile(dataDir: string): Promise<LockFile> {
  const file = join(dataDir, NAME);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return EMPTY;
    throw error;
  }
  try {
    return LockFile.parse(JSON.parse(text));
  } catch (cause) {
    throw new PlatformError(
      'CONFIG_PARSE_ERROR',
      `${NAME} cannot be read: ${messageOf(cause)}. Restore it from a backup; it is the only record of installed plugins.`,
      { cause },
    );
  }
}

/** Replaces the lock file atomically, so that readers never get a partial file, even after a crash. */
export async function writeLockFile(dataDir: string, lock: LockFile): Promise<void> {
  await replacePrivateFile(join(dataDir, NAME), `${JSON.stringify(lock, null, 2)}\n`);
}

/**
 * Returns a stamp that changes with every write of the lock file. The function is cheap enough to be polled each
 * second.
 */
export async function lockFileStamp(dataDir: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(join(dataDir, NAME));
    return `${ino} ${mtimeMs} ${size}`;
  } catch {
    return '';
  }
}

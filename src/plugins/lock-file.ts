import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LockFile } from '../contracts/index.ts';
import { codeOf, messageOf, PlatformError } from '../kit/errors.ts';

const NAME = 'marketplace.lock.json';
const EMPTY: LockFile = { version: 1, revision: 0, plugins: {} };

/** Where what was installed lies. */
export function pluginsFolder(dataDir: string): string {
  return join(dataDir, 'plugins');
}

/** What the marketplace wrote; nothing when it never did. Throws CONFIG_PARSE_ERROR for a damaged file. */
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
      `${NAME} cannot be read: ${messageOf(cause)}. Restore it from a backup; without it nobody knows which plugins are installed.`,
      { cause },
    );
  }
}

/** Replaces the file in one step: whoever reads meanwhile, or after a crash, sees the old one or the new one whole. */
export async function writeLockFile(dataDir: string, lock: LockFile): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = join(dataDir, NAME);
  const temporary = `${file}.${randomUUID()}`;
  const handle = await open(temporary, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(lock, null, 2)}\n`);
    await handle.sync();
    await handle.close();
    await rename(temporary, file);
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Changes whenever the file was written; cheap enough to ask for every second. */
export async function lockFileStamp(dataDir: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(join(dataDir, NAME));
    return `${ino} ${mtimeMs} ${size}`;
  } catch {
    return '';
  }
}

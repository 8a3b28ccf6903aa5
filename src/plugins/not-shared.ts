import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type LockEntry, LockFile } from '../contracts/index.ts';
import { codeOf } from '../kit/errors/errors.ts';
import { replacePrivateFile } from '../kit/files/replace-file.ts';
import { readLockFile } from './lock-file.ts';

/** File in the data folder with the plugins that this node had before it followed the list of the shared store. */
export const NOT_SHARED_FILE = 'plugins-not-shared.json';

/** Returns the plugins of this node that the shared list did not contain when the node began to follow it. */
export async function readNotShared(dataDir: string): Promise<LockEntry[]> {
  try {
    const text = await readFile(join(dataDir, NOT_SHARED_FILE), 'utf8');
    return Object.values(LockFile.parse(JSON.parse(text)).plugins);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Records plugins of this node, in addition to those already recorded, so that their folders are kept. */
export async function addNotShared(dataDir: string, entries: readonly LockEntry[]): Promise<void> {
  const all = [...(await readNotShared(dataDir)), ...entries];
  const plugins = Object.fromEntries(all.map((entry) => [entry.id, entry]));
  const file: LockFile = { version: 1, revision: 0, plugins };
  await replacePrivateFile(join(dataDir, NOT_SHARED_FILE), `${JSON.stringify(file, null, 2)}\n`);
}

/** Returns the recorded plugins of this node that still differ from the shared list. Installing one again resolves it. */
export async function stillNotShared(dataDir: string): Promise<LockEntry[]> {
  const entries = await readNotShared(dataDir);
  if (entries.length === 0) return [];
  const { plugins } = await readLockFile(dataDir);
  return entries.filter(({ id, version, enabled }) => {
    const there = plugins[id];
    return !there || there.version !== version || there.enabled !== enabled;
  });
}

/** Returns the plugins of a list that another list lacks or has in another state, such as another version. */
export function differingPlugins(own: LockFile, shared: LockFile): LockEntry[] {
  return Object.values(own.plugins).filter((entry) => {
    const there = shared.plugins[entry.id];
    if (!there) return entry.origin !== 'project' || !entry.enabled;
    const isSame = there.origin === entry.origin && there.integrity === entry.integrity;
    return !isSame || there.enabled !== entry.enabled;
  });
}

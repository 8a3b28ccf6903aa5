import type { LockFile } from '../../../contracts/index.ts';
import { readLockFile, writeLockFile } from '../../../plugins/index.ts';
import type { ReloadBroadcast } from './reload-broadcast.ts';

/** The list of installed plugins: a file on this node, or a table that all nodes share. */
export interface PluginLock {
  read(): Promise<LockFile>;
  /** Runs a change of the list while no other node runs one. */
  exclusive<Result>(change: () => Promise<Result>): Promise<Result>;
  /** Runs a change of the plugins folder while no other process of this node changes it. Must not be nested. */
  inFolder<Result>(change: () => Promise<Result>): Promise<Result>;
  /** Stores the files of a plugin, so that other nodes can fetch them. Must be called before `write`. */
  keep(folder: string, integrity: string): Promise<void>;
  /** Commits a change. Resolves when all services have reloaded. */
  write(lock: LockFile): Promise<void>;
  /** Makes every service reload, also after changes of files. Resolves with the new revision. */
  touch(): Promise<number>;
  /** Throws CONFLICT if a linked plugin would be missing on other nodes. */
  requireLinkable(): Promise<void>;
}

/** Creates the list in the lock file of this node. */
export function localPluginLock(dataDir: string, broadcastReload: ReloadBroadcast): PluginLock {
  async function write(lock: LockFile): Promise<void> {
    await writeLockFile(dataDir, lock);
    await broadcastReload();
  }
  return {
    read: () => readLockFile(dataDir),
    exclusive: (change) => change(),
    inFolder: (change) => change(),
    keep: async () => {},
    write,
    async touch() {
      const lock = await readLockFile(dataDir);
      const revision = lock.revision + 1;
      await write({ ...lock, revision });
      return revision;
    },
    requireLinkable: async () => {},
  };
}

import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { LockEntry, LockFile } from '../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import {
  createIntegrityCache,
  integrityOf,
  pluginsFolder,
  readLockFile,
  writeLockFile,
} from '../../../../plugins/index.ts';
import { STAGING } from '../plugin-folders.ts';
import type { Packages } from './packages.ts';

/**
 * Copy of the shared plugins in the data folder of this node. All services of the node load their plugins from this
 * copy. Calls must not overlap.
 */
export class PluginCache {
  readonly #dataDir: string;
  readonly #packages: Packages;
  readonly #integrity = createIntegrityCache();

  constructor(dataDir: string, packages: Packages) {
    this.#dataDir = dataDir;
    this.#packages = packages;
  }

  read(): Promise<LockFile> {
    return readLockFile(this.#dataDir);
  }

  /**
   * Fetches missing and changed packages, then replaces the lock file. If a package cannot be fetched, the lock file and
   * the running plugins stay as they are, and the method throws. Resolves with false if the lock file was up to date.
   */
  async update(lock: LockFile): Promise<boolean> {
    const failed: string[] = [];
    for (const entry of installedIn(lock)) {
      await this.#ensure(entry).catch((error) => failed.push(`${entry.id}: ${messageOf(error)}`));
    }
    if (failed.length > 0)
      throw new PlatformError('INTEGRITY_MISMATCH', `Plugins cannot be fetched. ${failed.join(' ')}`);
    // A damaged lock file is replaced.
    if (isDeepStrictEqual(await this.read().catch(() => undefined), lock)) return false;
    await writeLockFile(this.#dataDir, lock);
    return true;
  }

  /** Stores the packages of this node, and returns its list without the plugins whose files are missing or changed. */
  async publish(): Promise<LockFile> {
    const lock = await this.read();
    const plugins = { ...lock.plugins };
    for (const { id, folder, integrity } of installedIn(lock)) {
      const path = this.#pathOf(folder);
      const found = await integrityOf(path).catch(() => undefined);
      if (found === integrity) await this.#packages.keep(path, integrity);
      else delete plugins[id];
    }
    return { ...lock, plugins };
  }

  /** Rewrites the lock file unchanged, so that all services of this node reload. */
  async touch(): Promise<number> {
    const lock = await this.read();
    await writeLockFile(this.#dataDir, lock);
    return lock.revision;
  }

  async remove(folder: string): Promise<void> {
    await rm(this.#pathOf(folder), { recursive: true, force: true });
  }

  async #ensure({ folder, integrity }: InstalledEntry): Promise<void> {
    const path = this.#pathOf(folder);
    if ((await this.#integrity(path).catch(() => undefined)) === integrity) return;
    const staging = this.#pathOf(`${STAGING}${randomUUID()}`);
    const fetched = join(staging, 'plugin');
    await mkdir(fetched, { recursive: true, mode: 0o700 });
    try {
      await this.#packages.unpack(integrity, fetched);
      // Changed files are moved away, because they might be in use.
      await rename(path, join(staging, 'changed')).catch(() => {});
      await rename(fetched, path);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }

  /** Throws INTEGRITY_MISMATCH for a name that leads out of the folder, because the list comes from the database. */
  #pathOf(folder: string): string {
    if (basename(folder) !== folder || folder === '.' || folder === '..')
      throw new PlatformError(
        'INTEGRITY_MISMATCH',
        `The shared list of plugins names the folder "${folder}", which is not a plain folder name. Uninstall the plugin and install it again.`,
      );
    return join(pluginsFolder(this.#dataDir), folder);
  }
}

type InstalledEntry = LockEntry & { integrity: string };

export function installedIn({ plugins }: LockFile): InstalledEntry[] {
  return Object.values(plugins).filter(
    (entry): entry is InstalledEntry => entry.origin === 'installed' && entry.integrity !== null,
  );
}

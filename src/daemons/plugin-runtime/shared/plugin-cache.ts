import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { LockEntry, LockFile } from '../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import {
  addNotShared,
  createIntegrityCache,
  differingPlugins,
  integrityOf,
  pluginsFolder,
  readLockFile,
  readNotShared,
  writeLockFile,
} from '../../../plugins/index.ts';
import { acquireOwnerLock } from '../../../store/sqlite/index.ts';
import { notSharedWarning } from './not-shared-warning.ts';
import type { Packages } from './packages.ts';

/** Prefix of folders with incomplete plugins, which are removed at the next start. */
export const STAGING = '.staging-';
/**
 * Delay before a replaced folder is deleted, because running calls must finish and services must reload the lock file.
 */
export const KEEP_OLD_MS = minutes(2);
/** Maximum time to wait for another process of this node that downloads packages. */
const FOLDER_WAIT_MS = minutes(2);

export interface PluginCacheDeps {
  dataDir: string;
  packages: Packages;
  /** Name of this process in the lock of the folder. */
  label: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Copy of the shared plugins in the data folder of this node. All processes of the node load their plugins from this
 * copy, and each of them can update it. A lock in the data folder keeps their updates apart.
 */
export class PluginCache {
  readonly #deps: PluginCacheDeps;
  readonly #integrity = createIntegrityCache();
  readonly #cancelRemovals = new Set<() => void>();

  constructor(deps: PluginCacheDeps) {
    this.#deps = deps;
  }

  read(): Promise<LockFile> {
    return readLockFile(this.#deps.dataDir);
  }

  /** Runs a change of the plugins folder while no other process of this node changes it. Must not be nested. */
  async exclusive<Result>(change: () => Promise<Result>): Promise<Result> {
    const { dataDir, label } = this.#deps;
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const lock = await acquireOwnerLock({ file: pluginsFolder(dataDir), waitMs: FOLDER_WAIT_MS, label });
    try {
      return await change();
    } finally {
      lock.release();
    }
  }

  /**
   * Fetches missing and changed packages, then replaces the lock file. If a package cannot be fetched, the lock file and
   * the running plugins stay as they are, and the method throws. `readShared` is called under the lock of the folder, so
   * that no process replaces a newer list.
   */
  update(readShared: () => Promise<LockFile | undefined>): Promise<void> {
    return this.exclusive(async () => {
      const shared = await readShared();
      if (shared) await this.#update(shared);
    });
  }

  /** Stores the packages of this node, and returns its list without the plugins whose files are missing or changed. */
  publish(): Promise<LockFile> {
    return this.exclusive(async () => {
      const lock = await this.read();
      const plugins = { ...lock.plugins };
      for (const { id, folder, integrity } of installedIn(lock)) {
        const path = this.#pathOf(folder);
        const found = await integrityOf(path).catch(() => undefined);
        if (found === integrity) await this.#deps.packages.keep(path, integrity);
        else delete plugins[id];
      }
      return { ...lock, plugins };
    });
  }

  /** Removes the folders that no plugin uses, once running calls had time to finish. */
  sweepLater(): void {
    this.#later(async () => {
      const found = await readdir(pluginsFolder(this.#deps.dataDir)).catch(() => []);
      await this.#removeUnused(found);
    });
  }

  close(): void {
    for (const cancel of this.#cancelRemovals) cancel();
  }

  async #update(shared: LockFile): Promise<void> {
    const { dataDir } = this.#deps;
    const failed: string[] = [];
    for (const entry of installedIn(shared)) {
      await this.#ensure(entry).catch((error) => failed.push(`${entry.id}: ${messageOf(error)}`));
    }
    if (failed.length > 0)
      throw new PlatformError('INTEGRITY_MISMATCH', `Plugins cannot be fetched. ${failed.join(' ')}`);
    // A damaged lock file is replaced.
    const before = await this.read().catch(() => undefined);
    const next: LockFile = { ...shared, shared: true };
    if (isDeepStrictEqual(before, next)) return;
    if (before && !before.shared) await this.#setAside(before, shared);
    await writeLockFile(dataDir, next);
    if (before) this.#removeLater(before, next);
  }

  /** Keeps the plugins that this node had before it followed the shared list, and reports them. */
  async #setAside(own: LockFile, shared: LockFile): Promise<void> {
    const { dataDir, logger } = this.#deps;
    const differing = differingPlugins(own, shared);
    if (differing.length === 0) return;
    await addNotShared(dataDir, differing);
    const message = notSharedWarning({ differing, shared, dataDir });
    logger.diagnostic({
      ...{ domain: 'plugins', event: 'plugins.not_shared', level: 'warn', reasonCode: 'PLUGINS_NOT_SHARED' },
      message,
      outcome: 'degraded',
      evidence: { plugins: differing.map(({ id, version }) => `${id}@${version}`) },
    });
  }

  async #ensure({ folder, integrity }: InstalledEntry): Promise<void> {
    const path = this.#pathOf(folder);
    if ((await this.#integrity(path).catch(() => undefined)) === integrity) return;
    const staging = this.#pathOf(`${STAGING}${randomUUID()}`);
    const fetched = join(staging, 'plugin');
    await mkdir(fetched, { recursive: true, mode: 0o700 });
    try {
      await this.#deps.packages.unpack(integrity, fetched);
      // Changed files are moved away, because they might be in use.
      await rename(path, join(staging, 'changed')).catch(() => {});
      await rename(fetched, path);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }

  /** Removes the folders of replaced plugins once running calls had time to finish. */
  #removeLater(before: LockFile, now: LockFile): void {
    const used = new Set(installedIn(now).map(({ folder }) => folder));
    const unused = installedIn(before)
      .map(({ folder }) => folder)
      .filter((folder) => !used.has(folder));
    if (unused.length > 0) this.#later(() => this.#removeUnused(unused));
  }

  #later(remove: () => Promise<void>): void {
    const { clock, logger } = this.#deps;
    const cancel = clock.after(KEEP_OLD_MS, () => {
      this.#cancelRemovals.delete(cancel);
      this.exclusive(remove).catch((error) =>
        logger.warn('A replaced plugin could not be removed', { error }),
      );
    });
    this.#cancelRemovals.add(cancel);
  }

  async #removeUnused(folders: readonly string[]): Promise<void> {
    const { dataDir } = this.#deps;
    const kept = [...installedIn(await this.read()), ...(await readNotShared(dataDir))];
    const names = new Set(kept.map(({ folder }) => folder));
    for (const folder of folders)
      if (!names.has(folder)) await rm(this.#pathOf(folder), { recursive: true, force: true });
  }

  /** Throws INTEGRITY_MISMATCH for a name that leads out of the folder, because the list comes from the database. */
  #pathOf(folder: string): string {
    if (basename(folder) !== folder || folder === '.' || folder === '..')
      throw new PlatformError(
        'INTEGRITY_MISMATCH',
        `The shared list of plugins names the folder "${folder}", which is not a plain folder name. Uninstall the plugin and install it again.`,
      );
    return join(pluginsFolder(this.#deps.dataDir), folder);
  }
}

type InstalledEntry = LockEntry & { integrity: string };

export function installedIn({ plugins }: LockFile): InstalledEntry[] {
  return Object.values(plugins).filter(
    (entry): entry is InstalledEntry => entry.origin === 'installed' && entry.integrity !== null,
  );
}

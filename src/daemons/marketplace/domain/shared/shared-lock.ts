import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { LockFile } from '../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { PluginLockStore } from '../../../../store/ports/index.ts';
import type { PluginRuntime } from '../../../plugin-runtime/runtime.ts';
import { KEEP_OLD_MS } from '../plugin-folders.ts';
import type { PluginLock } from '../plugin-lock.ts';
import type { ReloadBroadcast } from '../reload-broadcast.ts';
import type { Packages } from './packages.ts';
import { installedIn, type PluginCache } from './plugin-cache.ts';

/** Longer than the lease of a member, so that a killed node does not count as late. */
const LOADED_TIMEOUT_MS = seconds(15);
const RECHECK_MS = 25;
const RETRY_MS = seconds(5);

const EMPTY: LockFile = { version: 1, revision: 0, plugins: {} };

export interface SharedLockDeps {
  store: PluginLockStore;
  cache: PluginCache;
  packages: Packages;
  /** Fence token of this marketplace. */
  fence: number;
  /** Whether other nodes use the store now or by configuration. */
  hasOtherNodes: () => Promise<boolean>;
  runtime: Pick<PluginRuntime, 'expectRevision'>;
  broadcastReload: ReloadBroadcast;
  clock: Clock;
  logger: Logger;
}

/** The list of installed plugins in the store that all nodes share. @spec docs/decisions/0225 */
export class SharedPluginLock implements PluginLock {
  readonly #deps: SharedLockDeps;
  /** Updates of the cache run one after another. */
  readonly #inTurn = pLimit(1);
  #loaded: number | undefined;
  #cancelRetry = (): void => {};
  #isClosed = false;

  constructor(deps: SharedLockDeps) {
    this.#deps = deps;
  }

  async read(): Promise<LockFile> {
    return (await this.#deps.store.read()) ?? EMPTY;
  }

  exclusive<Result>(change: () => Promise<Result>): Promise<Result> {
    return this.#deps.store.exclusive(async () => {
      // The checks of a change read the plugins from the cache.
      await this.sync();
      return change();
    });
  }

  keep(folder: string, integrity: string): Promise<void> {
    return this.#deps.packages.keep(folder, integrity);
  }

  async write(lock: LockFile): Promise<void> {
    const { store, packages, logger } = this.#deps;
    const used = integritiesOf(lock);
    const dropped = [...integritiesOf(await this.read())].some((integrity) => !used.has(integrity));
    if (!(await store.replace(lock)))
      throw new PlatformError(
        'CONFLICT',
        'Another node has changed the plugins meanwhile. No plugin was changed. Try again.',
      );
    await this.sync();
    if (dropped)
      await packages
        .prune(used)
        .catch((error) => logger.warn('Unused packages could not be deleted', { error }));
    await this.#waitForNodes(lock.revision);
  }

  async touch(): Promise<number> {
    const revision = await this.#inTurn(() => this.#deps.cache.touch());
    await this.#deps.broadcastReload();
    return revision;
  }

  async requireLinkable(): Promise<void> {
    if (!(await this.#deps.hasOtherNodes())) return;
    throw new PlatformError(
      'CONFLICT',
      'A linked plugin is a folder of one machine, but several nodes share the plugins. Add the folder to `plugins` in the config of every node, install it with `svc plugins install`, or link it on a platform with SQLite.',
    );
  }

  /**
   * Loads the latest list on this node. Never rejects: a failure is logged and repeated, and `/ready` answers 503 until
   * then.
   */
  sync(): Promise<void> {
    return this.#inTurn(() => this.#update());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#inTurn(async () => {});
  }

  async #update(): Promise<void> {
    if (this.#isClosed) return;
    this.#cancelRetry();
    try {
      await this.#load();
    } catch (error) {
      const { logger, clock } = this.#deps;
      logger.error(`The latest plugins cannot be loaded on this node: ${messageOf(error)}`, { error });
      this.#cancelRetry = clock.after(RETRY_MS, () => void this.sync());
    }
  }

  async #load(): Promise<void> {
    const { store, cache, runtime, broadcastReload, fence } = this.#deps;
    const lock = await store.read();
    if (!lock) return;
    runtime.expectRevision(lock.revision);
    const before = await cache.read().catch(() => EMPTY);
    const isNew = await cache.update(lock);
    if (isNew) this.#removeLater(before, lock);
    if (!isNew && this.#loaded === lock.revision) return;
    await broadcastReload();
    await store.noteLoaded(fence, lock.revision);
    this.#loaded = lock.revision;
  }

  /** Removes folders of replaced plugins once running calls had time to finish. */
  #removeLater(before: LockFile, { plugins }: LockFile): void {
    const { clock, cache, logger } = this.#deps;
    const used = (lock: LockFile['plugins'], folder: string) =>
      Object.values(lock).some((entry) => entry.folder === folder);
    const unused = installedIn(before).filter(({ folder }) => !used(plugins, folder));
    if (unused.length === 0) return;
    const remove = async (): Promise<void> => {
      const now = (await cache.read()).plugins;
      for (const { folder } of unused) if (!used(now, folder)) await cache.remove(folder);
    };
    clock.after(KEEP_OLD_MS, () => {
      if (this.#isClosed) return;
      this.#inTurn(remove).catch((error) => logger.warn('A replaced plugin could not be removed', { error }));
    });
  }

  /** Waits until all ready members have loaded a revision, or for 15 s. */
  async #waitForNodes(revision: number): Promise<void> {
    const { store, logger } = this.#deps;
    const until = performance.now() + LOADED_TIMEOUT_MS;
    try {
      let behind = await store.behind(revision);
      while (behind.length > 0 && performance.now() < until) {
        // Waits in real time, because each node in a test has a separate clock.
        await sleep(RECHECK_MS);
        behind = await store.behind(revision);
      }
      if (behind.length > 0)
        logger.warn('A plugin change is stored, but not all nodes have loaded it', {
          meta: { revision, behind, waitedMs: LOADED_TIMEOUT_MS },
        });
    } catch (error) {
      logger.warn('The plugin revisions of the nodes cannot be read', { error });
    }
  }
}

function integritiesOf(lock: LockFile): Set<string> {
  return new Set(installedIn(lock).map(({ integrity }) => integrity));
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { LockFile } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { seconds } from '../../../kit/time/duration.ts';
import type { PluginLockStore } from '../../../store/ports/index.ts';
import type { Packages } from '../../plugin-runtime/shared/packages.ts';
import { installedIn, type PluginCache } from '../../plugin-runtime/shared/plugin-cache.ts';
import type { PluginFollower } from '../../plugin-runtime/shared/plugin-follower.ts';
import type { PluginLock } from './plugin-lock.ts';

/** Longer than the lease of a member, so that a killed node does not count as late. */
const LOADED_TIMEOUT_MS = seconds(15);
const RECHECK_MS = 25;

const EMPTY: LockFile = { version: 1, revision: 0, plugins: {} };

export interface SharedLockDeps {
  store: PluginLockStore;
  packages: Packages;
  cache: Pick<PluginCache, 'exclusive'>;
  follower: Pick<PluginFollower, 'sync'>;
  /** Whether other nodes use the store now or by configuration. */
  hasOtherNodes: () => Promise<boolean>;
  logger: Logger;
}

/** Changes the list of installed plugins in the store that all nodes share. @spec docs/decisions/0225 */
export class SharedPluginLock implements PluginLock {
  readonly #deps: SharedLockDeps;

  constructor(deps: SharedLockDeps) {
    this.#deps = deps;
  }

  async read(): Promise<LockFile> {
    return (await this.#deps.store.read()) ?? EMPTY;
  }

  exclusive<Result>(change: () => Promise<Result>): Promise<Result> {
    const { store, follower } = this.#deps;
    return store.exclusive(async () => {
      // The checks of a change read the plugins from the cache.
      await follower.sync();
      return change();
    });
  }

  inFolder<Result>(change: () => Promise<Result>): Promise<Result> {
    return this.#deps.cache.exclusive(change);
  }

  keep(folder: string, integrity: string): Promise<void> {
    return this.#deps.packages.keep(folder, integrity);
  }

  async write(lock: LockFile): Promise<void> {
    const { store, follower, packages, logger } = this.#deps;
    const used = integritiesOf(lock);
    const dropped = [...integritiesOf(await this.read())].some((integrity) => !used.has(integrity));
    if (!(await store.replace(lock)))
      throw new PlatformError(
        'CONFLICT',
        'Another node has changed the plugins meanwhile. No plugin was changed. Try again.',
      );
    await follower.sync();
    if (dropped)
      await packages
        .prune(used)
        .catch((error) => logger.warn('Unused packages could not be deleted', { error }));
    await this.#waitForMembers(lock.revision);
  }

  /** Gives the unchanged list a new revision, which every process of every node loads. */
  touch(): Promise<number> {
    return this.#deps.store.exclusive(async () => {
      const lock = await this.read();
      const revision = lock.revision + 1;
      await this.write({ ...lock, revision });
      return revision;
    });
  }

  async requireLinkable(): Promise<void> {
    if (!(await this.#deps.hasOtherNodes())) return;
    throw new PlatformError(
      'CONFLICT',
      'A linked plugin is a folder of one machine, but several nodes share the plugins. Add the folder to `plugins` in the config of every node, install it with `svc plugins install`, or link it on a platform with SQLite.',
    );
  }

  /** Waits until all ready members have loaded a revision, or for 15 s. */
  async #waitForMembers(revision: number): Promise<void> {
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

import pLimit from 'p-limit';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { every, systemClock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import type { PluginLockStore } from '../../../store/ports/index.ts';
import type { PluginRuntime } from '../runtime.ts';
import type { PluginCache } from './plugin-cache.ts';

/** Poll interval of the revision. Uses wall-clock time even with a test clock, as the poll of the lock file does. */
const POLL_MS = 250;
const RETRY_MS = seconds(5);

export interface PluginFollowerDeps {
  store: Pick<PluginLockStore, 'read' | 'revision' | 'replace' | 'exclusive' | 'noteLoaded'>;
  cache: PluginCache;
  logger: Logger;
}

export interface Following {
  runtime: Pick<PluginRuntime, 'expectRevision' | 'loadedRevision' | 'upToDate'>;
  /** Fence token of this process. */
  fence: number;
  /** Called after each later load, before an installation counts this process as up to date. */
  beforeReport?: (revision: number) => Promise<void>;
}

/**
 * Keeps the plugins of this process equal to the list that all nodes share. Each process that loads plugins has its own
 * follower, so no service depends on a marketplace on its node. @spec docs/decisions/0225
 */
export class PluginFollower {
  readonly #deps: PluginFollowerDeps;
  /** Updates run one after another. */
  readonly #inTurn = pLimit(1);
  #following: Following | undefined;
  /** Revision that was stored as loaded by this process. */
  #reported: number | undefined;
  /** Message of the latest failure. The same failure is logged once. */
  #failure: string | undefined;
  #failed: { revision: number | undefined; retryAt: number } | undefined;
  #stopPolling = (): void => {};
  #isClosed = false;

  constructor(deps: PluginFollowerDeps) {
    this.#deps = deps;
  }

  /**
   * Updates the files of this node before its plugins are loaded. If no node has stored a list yet, the plugins of this
   * node become the list. A package that cannot be fetched does not stop the start: the process is then not ready, and
   * an operator can repair the list through it.
   */
  async prepare(): Promise<void> {
    const { store, cache } = this.#deps;
    await this.#publishFirst();
    await cache.update(() => store.read()).catch((error) => this.#report(error));
  }

  /** Resolves once this process has loaded the list, or could not, and follows further changes. */
  async start(following: Following): Promise<void> {
    const { beforeReport: _, ...first } = following;
    this.#following = first;
    await this.sync();
    this.#following = following;
    this.#stopPolling = every(systemClock, POLL_MS, () => this.#poll());
  }

  /**
   * Loads the latest list in this process. Never rejects: a failure is logged and repeated, and `/ready` answers 503
   * until then.
   */
  sync(): Promise<void> {
    return this.#inTurn(() => this.#sync());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopPolling();
    await this.#inTurn(async () => {});
    this.#deps.cache.close();
  }

  #poll(): void {
    if (this.#inTurn.activeCount === 0) void this.sync();
  }

  async #sync(): Promise<void> {
    if (this.#isClosed || !this.#following) return;
    let revision: number | undefined;
    try {
      revision = await this.#deps.store.revision();
      if (revision === this.#reported || this.#mustWait(revision)) return;
      await this.#load(this.#following, revision);
      if (this.#failure !== undefined) this.#deps.logger.info('The latest plugins are loaded now');
      this.#failure = undefined;
    } catch (error) {
      this.#failed = { revision, retryAt: performance.now() + RETRY_MS };
      this.#report(error);
    }
  }

  /** Whether the latest attempt to load this revision failed a moment ago. */
  #mustWait(revision: number): boolean {
    return this.#failed?.revision === revision && performance.now() < this.#failed.retryAt;
  }

  async #load({ runtime, fence, beforeReport }: Following, revision: number): Promise<void> {
    const { store, cache } = this.#deps;
    runtime.expectRevision(revision);
    if (revision > 0) await cache.update(() => store.read());
    await runtime.upToDate();
    const loaded = runtime.loadedRevision;
    if (loaded < revision) throw new Error(`Revision ${revision} of the plugins could not be loaded.`);
    await beforeReport?.(loaded);
    await store.noteLoaded(fence, loaded);
    this.#reported = loaded;
  }

  #report(error: unknown): void {
    const message = messageOf(error);
    if (message === this.#failure) return;
    this.#failure = message;
    this.#deps.logger.error(`The latest plugins cannot be loaded on this node: ${message}`, { error });
  }

  async #publishFirst(): Promise<void> {
    const { store, cache, logger } = this.#deps;
    const { revision } = await cache.read();
    if (revision === 0 || (await store.read())) return;
    await store.exclusive(async () => {
      if (await store.read()) return;
      const lock = await cache.publish();
      await store.replace(lock);
      logger.info('The plugins of this node are now the list that all nodes share', {
        meta: { plugins: Object.values(lock.plugins).map(({ id, version }) => `${id}@${version}`) },
      });
    });
  }
}

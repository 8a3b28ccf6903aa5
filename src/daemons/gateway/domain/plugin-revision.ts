import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { PluginLockStore } from '../../../store/ports/index.ts';
import type { ChangeFeed } from '../../membership/change-feed.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';

export interface PluginRevisionDeps {
  store: Pick<PluginLockStore, 'revision' | 'noteLoaded'>;
  feed: Pick<ChangeFeed, 'follow'>;
  plugins: Pick<PluginRuntime, 'loadedRevision' | 'expectRevision'>;
  /** Fence token of this gateway. */
  fence: number;
  logger: Logger;
}

/**
 * Compares the plugins of this gateway with the plugins that all nodes share. The marketplace of this node updates the
 * files, and this gateway is not ready until it has loaded them.
 */
export class PluginRevision {
  readonly #deps: PluginRevisionDeps;

  private constructor(deps: PluginRevisionDeps) {
    this.#deps = deps;
  }

  static async open(deps: PluginRevisionDeps): Promise<PluginRevision> {
    const revision = new PluginRevision(deps);
    deps.feed.follow('plugins', () => revision.#expect());
    await revision.#expect();
    await revision.report();
    return revision;
  }

  /** Stores the revision that this gateway has loaded. An installation waits for it. Never rejects. */
  async report(): Promise<void> {
    const { store, plugins, fence, logger } = this.#deps;
    await store
      .noteLoaded(fence, plugins.loadedRevision)
      .catch((error) => logger.warn('The revision of the loaded plugins cannot be stored', { error }));
  }

  async #expect(): Promise<void> {
    const { store, plugins } = this.#deps;
    plugins.expectRevision(await store.revision());
  }
}

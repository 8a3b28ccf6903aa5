import type { Logger } from '../../../kit/telemetry/logger.ts';
import { lockFileDigest } from '../../../plugins/index.ts';
import type { KeyValueStore } from '../../../store/ports/index.ts';
import type { ChangeFeed } from '../../membership/change-feed.ts';

/**
 * Cache scope of the digest of the plugin lock file. FEED_SCOPES contains this scope, so changes are added to the
 * change feed.
 */
const SCOPE = 'plugin-revision';
const KEY = 'current';

export interface PluginRevisionDeps {
  cache: KeyValueStore;
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
  dataDir: string;
  logger: Logger;
  /** Loads the current lock file on this node. */
  reload(): Promise<void>;
}

/**
 * Notifies nodes that share the store about plugin changes. These nodes then load the plugins before their next poll.
 */
export class PluginRevision {
  readonly #deps: PluginRevisionDeps;

  constructor(deps: PluginRevisionDeps) {
    this.#deps = deps;
    // The feed does not wait for the reload. A reload can take seconds and would delay revocations.
    deps.feed.follow('plugins', () => {
      deps.reload().catch((error) => deps.logger.error('The plugins could not be reloaded', { error }));
    });
  }

  /**
   * Publishes the digest of this node's lock file. Settles when the other nodes have read the change, or after a
   * second.
   */
  async publish(): Promise<void> {
    const { cache, feed, dataDir } = this.#deps;
    const digest = await lockFileDigest(dataDir);
    if (digest === null || digest === (await cache.get(SCOPE, KEY))?.value) return;
    await cache.set(SCOPE, KEY, digest);
    await feed.spread();
  }
}

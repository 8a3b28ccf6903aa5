import type { KeyValueStore, SecretKey } from '../../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../../membership/change-feed.ts';
import { endpointName } from '../receive/endpoint-name.ts';

/** Cache scope of paused webhooks. FEED_SCOPES contains this scope, so changes are added to the change feed. */
const SCOPE = 'webhook-pause';
const MAX_PAUSES = 100_000;

export interface WebhookPausesDeps {
  cache: KeyValueStore;
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
  /** Callback that is called when an endpoint is resumed, because its queued deliveries can run again. */
  onResume: () => void;
}

/** Stores which webhook endpoints are paused. @spec docs/webhooks.md "Pause" */
export class WebhookPauses {
  readonly #deps: WebhookPausesDeps;
  #paused: ReadonlySet<string> = new Set();
  /** Number of changes to `#paused`. A list that was read from the cache before a change is outdated. */
  #changes = 0;

  private constructor(deps: WebhookPausesDeps) {
    this.#deps = deps;
    deps.feed.follow('pauses', () => this.#reload());
  }

  static async open(deps: WebhookPausesDeps): Promise<WebhookPauses> {
    const pauses = new WebhookPauses(deps);
    await pauses.#reload();
    return pauses;
  }

  /** Returns whether an endpoint is paused. The method is synchronous, because it is called for each delivery. */
  isPaused(key: SecretKey): boolean {
    const paused = this.#paused;
    if (paused.size === 0) return false;
    return (
      paused.has(endpointName(key)) ||
      (key.instanceId !== '' && paused.has(endpointName({ ...key, instanceId: '' })))
    );
  }

  /**
   * Pauses an endpoint, or all instances if the key has no instance id. The change is durable once the promise settles.
   */
  async pause(key: SecretKey): Promise<void> {
    const { cache, feed } = this.#deps;
    await cache.set(SCOPE, endpointName(key), true);
    this.#replace(new Set(this.#paused).add(endpointName(key)));
    await feed.spread();
  }

  /** Resumes an endpoint. The change is durable once the promise settles. */
  async resume(key: SecretKey): Promise<void> {
    const { cache, feed, onResume } = this.#deps;
    await cache.delete(SCOPE, endpointName(key));
    const paused = new Set(this.#paused);
    paused.delete(endpointName(key));
    this.#replace(paused);
    onResume();
    await feed.spread();
  }

  async #reload(): Promise<void> {
    const { cache, onResume } = this.#deps;
    for (;;) {
      const changes = this.#changes;
      const paused = await load(cache);
      if (changes !== this.#changes) continue;
      const before = this.#paused;
      this.#replace(paused);
      if ([...before].some((name) => !paused.has(name))) onResume();
      return;
    }
  }

  #replace(paused: ReadonlySet<string>): void {
    this.#changes++;
    this.#paused = paused;
  }
}

async function load(cache: KeyValueStore): Promise<ReadonlySet<string>> {
  const entries = await cache.scan(SCOPE, { prefix: '', limit: MAX_PAUSES });
  return new Set(entries.map(({ key }) => key));
}

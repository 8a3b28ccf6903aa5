import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../../../kit/time/clock.ts';
import type { KeyValueStore, SecretKey } from '../../../../../store/ports/index.ts';
import type { ProcessGroup } from '../../../../group/process-group.ts';
import { endpointName } from '../receive/endpoint-name.ts';

const SCOPE = 'webhook-pause';
const MAX_PAUSES = 100_000;
/** Maximum delay for changes by other gateway processes if their broadcast is lost. */
const POLL_MS = 1000;

export interface WebhookPausesDeps {
  cache: KeyValueStore;
  clock: Clock;
  logger: Logger;
  /** Other gateway processes pause and resume too, so changes are broadcast. */
  group: ProcessGroup;
  /** Called when an endpoint is resumed, because its queued deliveries may run again. */
  onResume: () => void;
}

/** Stores which webhook endpoints are paused. @spec docs/webhooks.md "Pause" */
export class WebhookPauses {
  readonly #deps: WebhookPausesDeps;
  #paused: ReadonlySet<string>;
  readonly #stopPolling: () => void;

  private constructor(deps: WebhookPausesDeps, paused: ReadonlySet<string>) {
    this.#deps = deps;
    this.#paused = paused;
    const { group, clock } = deps;
    const reload = () => this.#reload();
    this.#stopPolling = group.role === 'alone' ? () => {} : every(clock, POLL_MS, () => void reload());
    group.onNews(SCOPE, reload);
  }

  static async open(deps: WebhookPausesDeps): Promise<WebhookPauses> {
    return new WebhookPauses(deps, await load(deps.cache));
  }

  /** Synchronous, because it is called for each delivery. */
  isPaused(key: SecretKey): boolean {
    const paused = this.#paused;
    if (paused.size === 0) return false;
    return (
      paused.has(endpointName(key)) ||
      (key.instanceId !== '' && paused.has(endpointName({ ...key, instanceId: '' })))
    );
  }

  /**
   * Pauses an endpoint, or all instances if the key has no instance id. The change is on disk once the promise settles.
   */
  async pause(key: SecretKey): Promise<void> {
    const { cache, group } = this.#deps;
    await cache.set(SCOPE, endpointName(key), true);
    this.#paused = new Set(this.#paused).add(endpointName(key));
    await group.announce(SCOPE);
  }

  /** Resumes an endpoint. The change is on disk once the promise settles. */
  async resume(key: SecretKey): Promise<void> {
    const { cache, group, onResume } = this.#deps;
    await cache.delete(SCOPE, endpointName(key));
    const paused = new Set(this.#paused);
    paused.delete(endpointName(key));
    this.#paused = paused;
    onResume();
    await group.announce(SCOPE);
  }

  close(): void {
    this.#stopPolling();
  }

  async #reload(): Promise<void> {
    const { cache, logger, onResume } = this.#deps;
    try {
      const before = this.#paused;
      const paused = await load(cache);
      this.#paused = paused;
      if ([...before].some((name) => !paused.has(name))) onResume();
    } catch (error) {
      logger.warn('The list of paused webhooks could not be reloaded', { error });
    }
  }
}

async function load(cache: KeyValueStore): Promise<ReadonlySet<string>> {
  const entries = await cache.scan(SCOPE, { prefix: '', limit: MAX_PAUSES });
  return new Set(entries.map(({ key }) => key));
}

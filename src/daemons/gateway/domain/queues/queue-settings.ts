import {
  QUEUE_DEFAULTS,
  type QueueSettingsInput,
  QueueSettings as Settings,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { QueueKey, QueueStore } from '../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../membership/change-feed.ts';

export interface QueueSettingsDeps {
  store: Pick<QueueStore, 'settings' | 'configure'>;
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
  /** Settings of `svc.config.json` by queue. */
  config: Readonly<Record<string, QueueSettingsInput>>;
}

/** A newer version of the platform may have stored further settings. They are ignored. */
const StoredSettings = Settings.partial();

/** Keeps the settings of queues in memory. The change feed reloads them after a change by any gateway. */
export class QueueSettingsCache {
  readonly #deps: QueueSettingsDeps;
  #stored = new Map<string, QueueSettingsInput>();

  private constructor(deps: QueueSettingsDeps) {
    this.#deps = deps;
  }

  static async open(deps: QueueSettingsDeps): Promise<QueueSettingsCache> {
    const settings = new QueueSettingsCache(deps);
    deps.feed.follow('queues', () => settings.#load());
    await settings.#load();
    return settings;
  }

  /** Returns the settings in force. */
  of(key: QueueKey): Settings {
    return { ...QUEUE_DEFAULTS, ...(this.#configured(key.queue) ?? this.#stored.get(nameOf(key))) };
  }

  sourceOf(key: QueueKey): 'config' | 'api' | 'default' {
    if (this.#configured(key.queue)) return 'config';
    return this.#stored.has(nameOf(key)) ? 'api' : 'default';
  }

  /** Names of the queues of a namespace that have settings. */
  names(namespaceId: string): string[] {
    const stored = [...this.#stored.keys()].map((name) => JSON.parse(name) as [string, string]);
    const own = stored.filter(([namespace]) => namespace === namespaceId).map(([, queue]) => queue);
    return [...Object.keys(this.#deps.config), ...own];
  }

  /** Sets the settings of a queue on all gateways. Throws CONFLICT for a queue of `svc.config.json`. */
  async configure(key: QueueKey, settings: QueueSettingsInput): Promise<void> {
    if (this.#configured(key.queue))
      throw new PlatformError(
        'CONFLICT',
        `The settings of the queue "${key.queue}" are in svc.config.json. Change "queues" there.`,
      );
    const isEmpty = Object.keys(settings).length === 0;
    await this.#deps.store.configure(key, isEmpty ? null : JSON.stringify(settings));
    await this.#load();
    await this.#deps.feed.spread();
  }

  #configured(queue: string): QueueSettingsInput | undefined {
    const { config } = this.#deps;
    return Object.hasOwn(config, queue) ? config[queue] : undefined;
  }

  async #load(): Promise<void> {
    const rows = await this.#deps.store.settings();
    this.#stored = new Map(rows.map((row) => [nameOf(row), StoredSettings.parse(JSON.parse(row.settings))]));
  }
}

const nameOf = ({ namespaceId, queue }: QueueKey): string => JSON.stringify([namespaceId, queue]);

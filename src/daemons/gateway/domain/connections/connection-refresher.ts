import pLimit from 'p-limit';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { ConnectionStore } from '../../../../store/ports/index.ts';
import type { ConnectionTokens } from './connection-tokens.ts';

const EVERY_MS = seconds(5);
const BATCH = 100;
/** Slow providers occupy few of these, because a request ends after 20 s. */
const CONCURRENCY = 20;

export interface ConnectionRefresherDeps {
  store: Pick<ConnectionStore, 'due' | 'find'>;
  tokens: Pick<ConnectionTokens, 'refresh'>;
  clock: Clock;
  logger: Logger;
}

/** Refreshes tokens ahead of their expiry. All gateways do; a lease in the store decides which one. */
export class ConnectionRefresher {
  readonly #deps: ConnectionRefresherDeps;
  readonly #limit = pLimit(CONCURRENCY);
  readonly #stop: () => void;
  #sweeping: Promise<void> | undefined;

  constructor(deps: ConnectionRefresherDeps) {
    this.#deps = deps;
    this.#stop = every(deps.clock, EVERY_MS, () => {
      this.#sweeping ??= this.#sweep().finally(() => {
        this.#sweeping = undefined;
      });
    });
  }

  /** Resolves when refreshes in flight are stored. */
  async close(): Promise<void> {
    this.#stop();
    this.#limit.clearQueue();
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { store, tokens, clock, logger } = this.#deps;
    try {
      const due = await store.due(clock.now(), BATCH);
      await Promise.allSettled(
        due.map((id) =>
          this.#limit(async () => {
            const record = await store.find(id);
            if (record?.id === id.id && record.refreshAt !== null && record.refreshAt <= clock.now())
              await tokens.refresh(record);
          }),
        ),
      );
    } catch (error) {
      logger.warn('Connections could not be refreshed; retrying in 5 s', { error });
    }
  }
}

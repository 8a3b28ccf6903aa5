import { codeOf } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { DeliveryEnd, WebhookInbox } from '../../../../../store/ports/index.ts';

/** Interval between write attempts while the store is unavailable, in ms of wall-clock time. */
const RETRY_MS = 500;

export interface DeliveryEndsDeps {
  inbox: Pick<WebhookInbox, 'finish'>;
  logger: Logger;
}

type Ending = Parameters<WebhookInbox['finish']>;

/**
 * Stores the outcomes of handler runs, and retries while the store is unavailable. Without retries, an outage would
 * leave deliveries unfinished and their ids claimed.
 */
export class DeliveryEnds {
  readonly #deps: DeliveryEndsDeps;
  readonly #closed = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(deps: DeliveryEndsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with true once the end is stored. Resolves with false if `close` is called while the store is unavailable.
   * Throws errors that a retry cannot solve.
   */
  async store(...ending: Ending): Promise<boolean> {
    for (let isReported = false; ; ) {
      try {
        await this.#deps.inbox.finish(...ending);
        return true;
      } catch (error) {
        if (codeOf(error) !== 'STORE_ERROR') throw error;
        if (!isReported) this.#report(error, ending);
        isReported = true;
      }
      if (!(await this.#mayRetry())) return false;
    }
  }

  /**
   * Stores the end of a delivery in the background, after the sender got an error response. Redeliveries wait until the
   * end is stored.
   */
  storeLater(webhookId: string, end: DeliveryEnd, marker: Ending[2]): void {
    void this.#mayRetry()
      .then((mayRetry) => mayRetry && this.store(webhookId, end, marker))
      .catch((error) => this.#report(error, [webhookId]));
  }

  /** Stops all retries. */
  close(): void {
    this.#isClosed = true;
    this.#closed.resolve();
  }

  /** Waits for the retry interval. Resolves with true, or with false as soon as `close` is called. */
  async #mayRetry(): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const waited = new Promise((resolve) => {
      timer = setTimeout(resolve, RETRY_MS).unref();
    });
    await Promise.race([waited, this.#closed.promise]);
    clearTimeout(timer);
    return !this.#isClosed;
  }

  #report(error: unknown, [webhookId]: readonly [string, ...unknown[]]): void {
    this.#deps.logger.error('The end of a delivery could not be written', { error, meta: { webhookId } });
  }
}

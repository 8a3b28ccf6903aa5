import { codeOf } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { DeliveryEnd, WebhookInbox } from '../../../../../store/ports/index.ts';

/** Interval between two tries to write while the store is away, in real time. */
const RETRY_MS = 500;

export interface DeliveryEndsDeps {
  inbox: Pick<WebhookInbox, 'finish'>;
  logger: Logger;
}

type Ending = Parameters<WebhookInbox['finish']>;

/**
 * Stores the outcomes of handler runs, also if the store is away when the handler ends. Without this, an outage of the
 * store would leave deliveries unfinished and ids claimed until the process ends.
 */
export class DeliveryEnds {
  readonly #deps: DeliveryEndsDeps;
  readonly #closed = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(deps: DeliveryEndsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with true once the end is stored, and with false if this was closed while the store was away. Throws
   * errors that a repetition cannot solve.
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
   * Stores the end of a delivery whose sender was told to send it again. Until it is stored, the repeated delivery
   * waits for this one.
   */
  storeLater(webhookId: string, end: DeliveryEnd, marker: Ending[2]): void {
    void this.#mayRetry()
      .then((mayRetry) => mayRetry && this.store(webhookId, end, marker))
      .catch((error) => this.#report(error, [webhookId]));
  }

  /** Ends all repetitions. */
  close(): void {
    this.#isClosed = true;
    this.#closed.resolve();
  }

  /** Waits for the next try. Resolves with false at once when this is closed. */
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

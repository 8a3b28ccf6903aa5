import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';

const PAGE = 200;
const RETRY_MS = 1000;

export interface DeliveryBacklogDeps {
  inbox: Pick<WebhookInbox, 'unfinished'>;
  logger: Logger;
  /** Returns whether the limit of deliveries in memory is reached. */
  isFull(): boolean;
  /** Adds a stored delivery to the queue in memory, unless the queue already contains the delivery. */
  hold(record: DeliveryRecord): void;
  /**
   * Allows these deliveries to be queued again. Must not be called during a refill, because the refill might have read
   * these deliveries as unfinished.
   */
  forget(webhookIds: readonly string[]): void;
}

/** Loads accepted deliveries that are in the store but not in memory. Reads the deliveries in order, page by page. */
export class DeliveryBacklog {
  readonly #deps: DeliveryBacklogDeps;
  #isPending = false;
  /**
   * Position up to which all unfinished deliveries are in memory or on hold, and no further ones can be added. Refills
   * start at this position, so that deliveries of paused webhooks are not scanned again.
   */
  #position = 0;
  #mustRescan = false;
  #refill: Promise<void> | undefined;
  #finishedMeanwhile: string[] = [];
  #isClosed = false;

  constructor(deps: DeliveryBacklogDeps) {
    this.#deps = deps;
  }

  /** Returns whether the store has deliveries that are not in memory. */
  get isPending(): boolean {
    return this.#isPending;
  }

  get isRefilling(): boolean {
    return this.#refill !== undefined;
  }

  /** Records that a new delivery is only in the store. */
  add(): void {
    this.#isPending = true;
  }

  /** Makes the next refill start with the oldest delivery. */
  rescan(): void {
    this.#mustRescan = true;
    this.#isPending = true;
  }

  /**
   * Loads deliveries until memory is full or the store has no further deliveries. Then calls `onDone`. Only one refill
   * runs at a time.
   */
  refill(onDone: () => void): void {
    this.#refill ??= this.#load().then(() => {
      this.#refill = undefined;
      this.#deps.forget(this.#finishedMeanwhile);
      this.#finishedMeanwhile = [];
      onDone();
    });
  }

  /**
   * Allows a finished delivery to be queued again. During a refill, the call takes effect after the refill. The refill
   * might have read the delivery as unfinished.
   */
  finished(webhookId: string): void {
    if (this.#refill) this.#finishedMeanwhile.push(webhookId);
    else this.#deps.forget([webhookId]);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#refill;
  }

  async #load(): Promise<void> {
    const { inbox, logger, isFull, hold } = this.#deps;
    this.#isPending = false;
    if (this.#mustRescan) this.#position = 0;
    this.#mustRescan = false;
    try {
      let isProvisional = false;
      for (let after = this.#position; !this.#isClosed && !isFull(); ) {
        const page = await inbox.unfinished(PAGE, after);
        for (const record of page) {
          hold(record);
          isProvisional ||= record.isProvisional ?? false;
          if (!isProvisional) this.#position = record.position;
        }
        if (page.length < PAGE) break;
        after = page.at(-1)!.position;
      }
      this.#isPending ||= isFull();
    } catch (error) {
      this.#isPending = true;
      logger.error('Accepted deliveries could not be read back; retrying', { error });
      await new Promise<void>((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
  }
}

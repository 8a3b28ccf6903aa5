import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';

const PAGE = 200;
const RETRY_MS = 1000;

export interface DeliveryBacklogDeps {
  inbox: Pick<WebhookInbox, 'unfinished'>;
  logger: Logger;
  /** Whether memory takes no more deliveries. */
  isFull(): boolean;
  /** Takes a stored delivery into memory, unless it is there already. */
  hold(record: DeliveryRecord): void;
  /** Lets deliveries be held again, since no page that lists them is being read. */
  forget(webhookIds: readonly string[]): void;
}

/** Accepted deliveries that only the store has. Loads them in order, page by page. */
export class DeliveryBacklog {
  readonly #deps: DeliveryBacklogDeps;
  #isPending = false;
  /**
   * Up to this position, open deliveries are in memory or on hold. Without it, each refill would rescan a
   * paused webhook's backlog: two thirds of the CPU time at 60,000 deliveries.
   */
  #position = 0;
  #mustRescan = false;
  #refill: Promise<void> | undefined;
  #finishedMeanwhile: string[] = [];
  #isClosed = false;

  constructor(deps: DeliveryBacklogDeps) {
    this.#deps = deps;
  }

  /** The store has deliveries that are not in memory. */
  get isPending(): boolean {
    return this.#isPending;
  }

  get isRefilling(): boolean {
    return this.#refill !== undefined;
  }

  /** A delivery was left in the store alone. */
  add(): void {
    this.#isPending = true;
  }

  /** The next refill starts with the oldest delivery. */
  rescan(): void {
    this.#mustRescan = true;
    this.#isPending = true;
  }

  /** Loads deliveries until memory is full or none are left, then calls `onDone`. One refill runs at a time. */
  refill(onDone: () => void): void {
    this.#refill ??= this.#load().then(() => {
      this.#refill = undefined;
      this.#deps.forget(this.#finishedMeanwhile);
      this.#finishedMeanwhile = [];
      onDone();
    });
  }

  /** A page that is being read may still list a delivery that has just finished. */
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
      while (!this.#isClosed && !isFull()) {
        const page = await inbox.unfinished(PAGE, this.#position);
        for (const record of page) hold(record);
        this.#position = page.at(-1)?.position ?? this.#position;
        if (page.length < PAGE) break;
      }
      this.#isPending ||= isFull();
    } catch (error) {
      this.#isPending = true;
      logger.error('Accepted deliveries could not be read back; retrying', { error });
      await new Promise<void>((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
  }
}

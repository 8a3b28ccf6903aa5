export interface Pending<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface BatchesOptions<Item, Result> {
  /**
   * Settles the promises of all items. If this function rejects, the caller rejects all items that are still pending.
   */
  write(batch: readonly Pending<Item, Result>[]): Promise<void>;
  /** Returns the size of the next batch, at least one. */
  cut(queue: readonly Pending<Item, Result>[]): number;
  /** Minimum batch size. Under load, a smaller batch waits a millisecond for more items. */
  small: number;
  closedError(): Error;
}

const GATHER_MS = 1;
/** Minimum number of items, in the last batch and the queue combined, that counts as load. */
const MIN_LOAD = 4;

/** Collects items while the current batch is written, so that batches grow with the load. */
export class Batches<Item, Result> {
  readonly #options: BatchesOptions<Item, Result>;
  #queue: Pending<Item, Result>[] = [];
  #isWriting = false;
  #isClosed = false;
  #whenIdle: Array<() => void> = [];
  #gathering: NodeJS.Timeout | undefined;
  readonly #next = (): void => this.#writeNext();

  constructor(options: BatchesOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(this.#options.closedError());
        return;
      }
      this.#queue.push({ item, resolve, reject });
      // `setImmediate` lets items that are added in the same event-loop turn join the batch.
      const firstSize = this.#gathering ? this.#options.small : 1;
      if (!this.#isWriting && this.#queue.length === firstSize) setImmediate(this.#next);
    });
  }

  /** Resolves when the queue is empty. Items that are added after this call are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#isWriting || this.#queue.length > 0)
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #writeNext(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    if (this.#isWriting) return;
    if (this.#queue.length === 0) {
      for (const tell of this.#whenIdle) tell();
      this.#whenIdle = [];
      return;
    }
    const count = this.#options.cut(this.#queue);
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    this.#isWriting = true;
    void this.#finish(batch);
  }

  async #finish(batch: readonly Pending<Item, Result>[]): Promise<void> {
    try {
      await this.#options.write(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#isWriting = false;
    const { small } = this.#options;
    const queued = this.#queue.length;
    const isWorthwhile = queued > 0 && queued < small && batch.length + queued >= MIN_LOAD;
    if (isWorthwhile) this.#gathering = setTimeout(this.#next, GATHER_MS);
    else this.#writeNext();
  }
}

/** An item that waits to be written in a batch. */
interface Waiting<Item, Result> {
  item: Item;
  bytes: number;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface BatchWriterOptions<Item, Result> {
  /** Writes the items in one transaction. Returns one result per item, in the order of the items. */
  write(items: readonly Item[]): Promise<readonly Result[]>;
  sizeOf(item: Item): number;
  /** Maximum number of batches that are written at the same time, each on its own connection. */
  maxRunning: number;
  maxItems: number;
  maxBytes: number;
}

/** Writes items in batches. While all connections are busy, new items are collected for the next batch. */
export class BatchWriter<Item, Result> {
  readonly #options: BatchWriterOptions<Item, Result>;
  #waiting: Waiting<Item, Result>[] = [];
  #running = 0;
  #isScheduled = false;

  constructor(options: BatchWriterOptions<Item, Result>) {
    this.#options = options;
  }

  /** Adds an item to the next batch. Resolves with the item's result once the batch is durable. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, bytes: this.#options.sizeOf(item), resolve, reject });
      this.#schedule();
    });
  }

  /** Starts a batch after the current event-loop turn, so that items added in the same turn share the batch. */
  #schedule(): void {
    if (this.#isScheduled || this.#running >= this.#options.maxRunning) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    const batch = this.#take();
    if (batch.length === 0) return;
    this.#running++;
    if (this.#waiting.length > 0) this.#schedule();
    await this.#write(batch);
    this.#running--;
    if (this.#waiting.length > 0) this.#schedule();
  }

  #take(): Waiting<Item, Result>[] {
    const { maxItems, maxBytes } = this.#options;
    let bytes = 0;
    let count = 0;
    for (const { bytes: size } of this.#waiting) {
      if (count > 0 && (count === maxItems || bytes + size > maxBytes)) break;
      bytes += size;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #write(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.write(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]!);
    } catch (error) {
      // One invalid item, or one whose row is locked for long, fails the whole transaction. The items are then written
      // one by one.
      if (batch.length > 1 && isFaultOfOneItem(error)) for (const each of batch) await this.#write([each]);
      else for (const { reject } of batch) reject(error);
    }
  }
}

/** Returns whether the SQLSTATE of an error stands for invalid data, a violated constraint or a lock timeout. */
function isFaultOfOneItem(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^(?:22|23|54|55P03)/.test(code);
}

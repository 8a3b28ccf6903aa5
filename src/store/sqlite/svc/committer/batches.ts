/** A queued write and its promise. */
export interface Pending<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface BatchesOptions<Item, Result> {
  /** Settles each item of a batch; an error rejects those that are not settled. */
  write(batch: readonly Pending<Item, Result>[]): Promise<void>;
  /**
   * Returns the size of the next batch, at least one; a cap keeps the first item from waiting for a long
   * batch.
   */
  cut(queue: readonly Pending<Item, Result>[]): number;
  /** Under load, a smaller batch waits a millisecond for more items. */
  small: number;
  /** The error for writes after `close`. */
  closedError(): Error;
}

export interface Batches<Item, Result> {
  add(item: Item): Promise<Result>;
  /** Resolves when the queue is empty; later writes are rejected. */
  close(): Promise<void>;
}

const GATHER_MS = 1;
/** Load threshold: items in the last batch and the queue together. */
const MIN_LOAD = 4;

/** Collects the next batch while one is being written, so batches grow with the load. */
export function createBatches<Item, Result>({
  write,
  cut,
  small,
  closedError,
}: BatchesOptions<Item, Result>): Batches<Item, Result> {
  let queue: Pending<Item, Result>[] = [];
  let isWriting = false;
  let closed = false;
  let whenIdle: Array<() => void> = [];
  let gathering: NodeJS.Timeout | undefined;

  function next(): void {
    clearTimeout(gathering);
    gathering = undefined;
    if (isWriting) return;
    if (queue.length === 0) {
      for (const tell of whenIdle) tell();
      whenIdle = [];
      return;
    }
    const count = cut(queue);
    const batch = queue.slice(0, count);
    queue = queue.slice(count);
    isWriting = true;
    void finish(batch);
  }

  async function finish(batch: readonly Pending<Item, Result>[]): Promise<void> {
    try {
      await write(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    isWriting = false;
    const isWorthwhile = queue.length > 0 && queue.length < small && batch.length + queue.length >= MIN_LOAD;
    if (isWorthwhile) gathering = setTimeout(next, GATHER_MS);
    else next();
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(closedError());
          return;
        }
        queue.push({ item, resolve, reject });
        // Items added in the same turn join the batch.
        if (!isWriting && queue.length === (gathering ? small : 1)) setImmediate(next);
      }),
    async close() {
      closed = true;
      if (isWriting || queue.length > 0) await new Promise<void>((resolve) => whenIdle.push(resolve));
    },
  };
}

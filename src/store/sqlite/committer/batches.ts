/** What waits to be written, and whom to tell. */
export interface Pending<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface BatchesOptions<Item, Result> {
  /** Settles each of a batch; what it throws rejects those that are not settled. */
  write(batch: readonly Pending<Item, Result>[]): Promise<void>;
  /** How many of the queue go together, at least one: a longer one is cut, so that the first need not wait for the last. */
  cut(queue: readonly Pending<Item, Result>[]): number;
  /** A batch of fewer waits a millisecond for more where there is company. */
  small: number;
  /** Why nothing is taken any more. */
  closedError(): Error;
}

export interface Batches<Item, Result> {
  add(item: Item): Promise<Result>;
  /** Settles when nothing is queued; what comes later is refused. */
  close(): Promise<void>;
}

const GATHER_MS = 1;
/** Company: so many in the last batch and the one that gathers. */
const COMPANY = 4;

/** While one batch is being written the next gathers, so batches grow with the load by themselves. */
export function createBatches<Item, Result>({
  write,
  cut,
  small,
  closedError,
}: BatchesOptions<Item, Result>): Batches<Item, Result> {
  let queue: Pending<Item, Result>[] = [];
  let underWay = false;
  let closed = false;
  let whenIdle: Array<() => void> = [];
  let gathering: NodeJS.Timeout | undefined;

  function next(): void {
    clearTimeout(gathering);
    gathering = undefined;
    if (underWay) return;
    if (queue.length === 0) {
      for (const tell of whenIdle) tell();
      whenIdle = [];
      return;
    }
    const count = cut(queue);
    const batch = queue.slice(0, count);
    queue = queue.slice(count);
    underWay = true;
    void finish(batch);
  }

  async function finish(batch: readonly Pending<Item, Result>[]): Promise<void> {
    try {
      await write(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    underWay = false;
    const isWorthwhile = queue.length > 0 && queue.length < small && batch.length + queue.length >= COMPANY;
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
        // The rest of this turn's come along.
        if (!underWay && queue.length === (gathering ? small : 1)) setImmediate(next);
      }),
    async close() {
      closed = true;
      if (underWay || queue.length > 0) await new Promise<void>((resolve) => whenIdle.push(resolve));
    },
  };
}

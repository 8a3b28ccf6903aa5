interface Waiter {
  begin(): void;
  refuse(error: Error): void;
}

/** State of one key. `waitersBySource` contains a wait queue for each source, in round-robin order. */
interface Limited {
  running: number;
  waiting: number;
  waitersBySource: Map<string, Waiter[]>;
}

export interface FairSemaphoreOptions {
  /** Maximum number of concurrent calls per key. */
  concurrency: number;
  /** Maximum number of waiting calls per key. */
  maxWaiting: number;
}

/**
 * Limits concurrent calls per key and serves waiting calls round robin by source. A full queue rejects the latest call
 * of the source with the most waiting calls. No source can therefore lock out other sources.
 */
export class FairSemaphore {
  readonly #keys = new Map<string, Limited>();
  readonly #options: FairSemaphoreOptions;

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /**
   * Runs the call once a slot is free. If the wait queue is full, this call or a waiting call of another source fails
   * with the error from `full`.
   */
  async run<T>(
    { key, source }: { key: string; source: string },
    call: () => Promise<T>,
    full: () => Error,
  ): Promise<T> {
    const limited = this.#keys.get(key) ?? { running: 0, waiting: 0, waitersBySource: new Map() };
    this.#keys.set(key, limited);
    if (limited.running < this.#options.concurrency) limited.running++;
    else await this.#wait(limited, source, full);
    try {
      return await call();
    } finally {
      const next = takeNext(limited);
      if (next) next.begin();
      else if (--limited.running === 0) this.#keys.delete(key);
    }
  }

  #wait(limited: Limited, source: string, full: () => Error): Promise<void> {
    if (limited.waiting >= this.#options.maxWaiting && !makeRoom(limited, source, full)) throw full();
    return new Promise((resolve, reject) => {
      const own = limited.waitersBySource.get(source) ?? [];
      own.push({ begin: resolve, refuse: reject });
      limited.waitersBySource.set(source, own);
      limited.waiting++;
    });
  }
}

/** Returns the next waiting call and moves the call's source to the end of the round-robin order. */
function takeNext(limited: Limited): Waiter | undefined {
  const { waitersBySource } = limited;
  const [first] = waitersBySource;
  if (!first) return undefined;
  const [source, waiters] = first;
  const next = waiters.shift();
  waitersBySource.delete(source);
  if (waiters.length > 0) waitersBySource.set(source, waiters);
  limited.waiting--;
  return next;
}

/**
 * Makes room for a new call of `source` by rejecting the newest waiting call of the source with the longest queue.
 * Returns false without a rejection if the new call would make the queue of `source` at least as long.
 */
function makeRoom(limited: Limited, source: string, full: () => Error): boolean {
  const { waitersBySource } = limited;
  let longest: Waiter[] = [];
  for (const waiters of waitersBySource.values()) if (waiters.length > longest.length) longest = waiters;
  if ((waitersBySource.get(source)?.length ?? 0) + 1 >= longest.length) return false;
  longest.pop()!.refuse(full());
  limited.waiting--;
  return true;
}

interface Waiter {
  begin(): void;
  refuse(error: Error): void;
}

/** State of one key; its wait queues are in round-robin order. */
interface Limited {
  running: number;
  waiting: number;
  waitersBySource: Map<string, Waiter[]>;
}

export interface FairSemaphoreOptions {
  /** Concurrent calls per key. */
  concurrency: number;
  /** Waiting calls per key. */
  maxWaiting: number;
}

/**
 * Limits concurrent calls per key; waiting calls are served round robin by source. When the wait queue is
 * full, the source with most waiting calls loses its last one, so that it cannot lock out others.
 */
export class FairSemaphore {
  readonly #keys = new Map<string, Limited>();
  readonly #options: FairSemaphoreOptions;

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** Rejects with the error of `full` when the key's wait queue has no room for the source. */
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

/** Moves the served source to the end. */
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

/** Returns false if the source has most waiting calls itself. */
function makeRoom(limited: Limited, source: string, full: () => Error): boolean {
  const { waitersBySource } = limited;
  let longest: Waiter[] = [];
  for (const waiters of waitersBySource.values()) if (waiters.length > longest.length) longest = waiters;
  if ((waitersBySource.get(source)?.length ?? 0) + 1 >= longest.length) return false;
  longest.pop()!.refuse(full());
  limited.waiting--;
  return true;
}

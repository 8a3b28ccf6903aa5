/** Runs a few calls of each key at a time, in order, with a bounded queue. */
export class BoundedTurns {
  readonly #keys = new Map<string, { running: number; waiting: Array<() => void> }>();
  readonly #concurrency: number;
  readonly #maxWaiting: number;

  constructor(concurrency: number, maxWaiting: number) {
    this.#concurrency = concurrency;
    this.#maxWaiting = maxWaiting;
  }

  /** Rejects with the error of `full` when the queue of the key is full. */
  async run<T>(key: string, call: () => Promise<T>, full: () => Error): Promise<T> {
    const turns = this.#keys.get(key) ?? { running: 0, waiting: [] };
    this.#keys.set(key, turns);
    if (turns.running < this.#concurrency) turns.running++;
    else if (turns.waiting.length >= this.#maxWaiting) throw full();
    else await new Promise<void>((resolve) => turns.waiting.push(resolve));
    try {
      return await call();
    } finally {
      const next = turns.waiting.shift();
      if (next) next();
      else if (--turns.running === 0) this.#keys.delete(key);
    }
  }
}

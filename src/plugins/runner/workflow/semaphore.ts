/**
 * Limits the number of concurrent tasks. Further tasks wait in FIFO order. With a free permit, a task starts
 * synchronously, because a later start would change the order of steps.
 */
export class Semaphore {
  readonly #waiting: Array<() => void> = [];
  #free: number;

  constructor(permits: number) {
    this.#free = permits;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

/**
 * Limits how many tasks run concurrently; others wait in FIFO order. Starts a task synchronously if a permit is free: p-limit
 * starts it a microtask later, so that steps that need two permits would reach the run after steps that need one.
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

/**
 * Limits how many tasks run concurrently. Other tasks wait in FIFO order. A task starts synchronously if a permit is
 * free: p-limit would start it a microtask later, which would change the order in which steps reach the run.
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

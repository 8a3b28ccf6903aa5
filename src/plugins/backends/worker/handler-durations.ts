import { createBoundedCache } from '../../../kit/data/bounded-cache.ts';

/** Weights of a new duration in the average. Slow calls count more, because calls could wait behind them. */
const WEIGHT_OF_SLOWER = 0.5;
const WEIGHT_OF_FASTER = 0.1;

/** Moving averages of the durations of a plugin's handlers, in ms. */
export class HandlerDurations {
  readonly #averages = createBoundedCache<number>(1000);

  note(handler: string, ms: number): void {
    const average = this.#averages.get(handler) ?? ms;
    const weight = ms > average ? WEIGHT_OF_SLOWER : WEIGHT_OF_FASTER;
    this.#averages.set(handler, average + (ms - average) * weight);
  }

  /** Returns Infinity for a handler that has not run yet. */
  averageMs(handler: string): number {
    return this.#averages.get(handler) ?? Number.POSITIVE_INFINITY;
  }
}

import type { Batch } from './ingest.ts';

/** A batch that waits to be stored. */
export interface Pending {
  batch: Batch;
  /** Size of the lines from which the batch was parsed. */
  bytes: number;
  /** Resolves when the batch is stored or dropped. */
  settled: Promise<void>;
  settle(): void;
}

/** Batches in the order in which they must be stored. Their number of bytes is limited. */
export class Backlog {
  readonly #maxBytes: number;
  #pending: Pending[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get first(): Pending | undefined {
    return this.#pending[0];
  }

  /** Resolves when all batches that were added before the call are stored or dropped. */
  settled(): Promise<void> {
    return this.#pending.at(-1)?.settled ?? Promise.resolve();
  }

  /** Adds a batch. Returns the oldest batches, which are dropped if the limit is exceeded. */
  add(batch: Batch, bytes: number): Pending[] {
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>();
    this.#pending.push({ batch, bytes, settled, settle });
    this.#bytes += bytes;
    const dropped: Pending[] = [];
    // The first batch is being stored, so it is kept.
    while (this.#bytes > this.#maxBytes && this.#pending.length > 2) {
      const [oldest] = this.#pending.splice(1, 1);
      this.#settle(oldest!);
      dropped.push(oldest!);
    }
    return dropped;
  }

  /** Removes the first batch, which is stored or dropped. */
  remove(): void {
    const first = this.#pending.shift();
    if (first) this.#settle(first);
  }

  #settle({ bytes, settle }: Pending): void {
    this.#bytes -= bytes;
    settle();
  }
}

type CleanUp = () => unknown;

/** Stops what a benchmark started, the newest first, also when the benchmark is interrupted. */
export class CleanUps {
  readonly #all: CleanUp[] = [];
  readonly #onSignal = (): void => void this.run().finally(() => process.exit(1));

  constructor() {
    process.once('SIGINT', this.#onSignal).once('SIGTERM', this.#onSignal);
  }

  add(cleanUp: CleanUp): void {
    this.#all.push(cleanUp);
  }

  async run(): Promise<void> {
    process.off('SIGINT', this.#onSignal).off('SIGTERM', this.#onSignal);
    for (let last = this.#all.pop(); last; last = this.#all.pop()) {
      try {
        await last();
      } catch (error) {
        // The remaining ones must still run.
        console.error(error);
      }
    }
  }
}

/**
 * Notifies the dispatcher that stored deliveries can run again, for example after a webhook is resumed or a service recovers.
 */
export class BacklogSignal {
  readonly #listeners = new Set<() => void>();

  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/**
 * Notifies the dispatcher that stored deliveries can run again. Causes are the resume of a webhook, a plugin reload, or
 * the recovery of a service.
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

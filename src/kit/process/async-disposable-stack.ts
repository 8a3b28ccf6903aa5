/** Replacement of the global class, which Node 22 lacks. Builds import it, so that code uses the name of the standard. */
export class AsyncDisposables {
  readonly #disposals: Array<() => unknown> = [];
  #disposed = false;

  get disposed(): boolean {
    return this.#disposed;
  }

  use<T extends AsyncDisposable | Disposable | null | undefined>(value: T): T {
    this.#check();
    const resource = value as Partial<AsyncDisposable & Disposable> | null | undefined;
    const dispose = resource?.[Symbol.asyncDispose] ?? resource?.[Symbol.dispose];
    if (resource && !dispose) throw new TypeError('The resource has no method that disposes it.');
    if (dispose) this.#disposals.push(() => dispose.call(resource));
    return value;
  }

  adopt<T>(value: T, dispose: (value: T) => unknown): T {
    this.defer(() => dispose(value));
    return value;
  }

  defer(dispose: () => unknown): void {
    this.#check();
    this.#disposals.push(dispose);
  }

  move(): AsyncDisposables {
    this.#check();
    const next = new AsyncDisposables();
    next.#disposals.push(...this.#disposals.splice(0));
    this.#disposed = true;
    return next;
  }

  /** Disposes the resources in reverse order, each of them even if others fail. Throws what failed. */
  async disposeAsync(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    const failures: unknown[] = [];
    for (const dispose of this.#disposals.splice(0).toReversed()) {
      try {
        await dispose();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 1) throw new AggregateError(failures, 'Several resources could not be disposed.');
    if (failures.length > 0) throw failures[0];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync();
  }

  get [Symbol.toStringTag](): 'AsyncDisposableStack' {
    return 'AsyncDisposableStack';
  }

  #check(): void {
    if (this.#disposed) throw new ReferenceError('The stack is already disposed.');
  }
}

export const AsyncDisposableStack = globalThis.AsyncDisposableStack ?? AsyncDisposables;

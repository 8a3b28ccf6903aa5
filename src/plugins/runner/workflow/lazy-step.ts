/**
 * A step that starts only when code awaits the step or passes the step to `ctx.all`. A step without `await` never
 * starts and can therefore be detected.
 */
export class LazyStep<Result> implements Promise<Result> {
  readonly [Symbol.toStringTag] = 'WorkflowStep';
  readonly name: string;
  #start: () => Promise<Result>;
  #started: Promise<Result> | undefined;

  constructor(name: string, start: () => Promise<Result>) {
    this.name = name;
    this.#start = start;
  }

  get isStarted(): boolean {
    return this.#started !== undefined;
  }

  /** Starts the step with the function `start`, unless the step has already started. */
  startAs(start: () => Promise<Result>): Promise<Result> {
    this.#started ??= start();
    return this.#started;
  }

  // biome-ignore lint/suspicious/noThenProperty: it implements Promise.
  then<Fulfilled = Result, Rejected = never>(
    onFulfilled?: ((value: Result) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.startAs(this.#start).then(onFulfilled, onRejected);
  }

  catch<Rejected = never>(
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Result | Rejected> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<Result> {
    return this.startAs(this.#start).finally(onFinally);
  }
}

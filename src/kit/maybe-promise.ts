/** What is mostly known at once: a hot path that awaits it all the same pays for a turn of the microtask queue each time. */
export type MaybePromise<T> = T | Promise<T>;

/** Goes on with a value: now, or when it comes. */
export function onceKnown<T, U>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

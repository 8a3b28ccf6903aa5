/** A value or a promise. Frequently called code does not `await` plain values, because `await` costs a microtask. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Calls `next` with the value. A plain value is passed at once. The value of a promise is passed when the promise
 * resolves.
 */
export function onceKnown<T, U>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

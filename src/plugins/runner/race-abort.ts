/**
 * Settles like the promise, or rejects with the reason of the signal as soon as the signal is aborted. Rejects at once
 * if the signal is aborted already.
 */
export async function raceAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const stop = (): void => aborted.reject(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Flow control of a stream: the number of bytes that the sender may still send. */
export interface StreamCredit {
  grant(bytes: number): void;
  /**
   * Waits for credit for all of `bytes`, then spends it. Chunks are never split to the available credit,
   * since a slow reader would get ever smaller ones. Rejects when the signal aborts.
   */
  take(bytes: number): Promise<void>;
}

/** Credit at the sender of one stream. A chunk must not exceed the reader's window. */
export function createStreamCredit(signal: AbortSignal): StreamCredit {
  let left = 0;
  let wake = (): void => {};
  signal.addEventListener('abort', () => wake(), { once: true });
  return {
    grant(bytes) {
      left += bytes;
      wake();
    },
    async take(bytes) {
      while (left < bytes && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      signal.throwIfAborted();
      left -= bytes;
    },
  };
}

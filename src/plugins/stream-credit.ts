/** Flow control of a stream. The credit is the number of bytes that the sender is allowed to send. */
export interface StreamCredit {
  grant(bytes: number): void;
  /**
   * Waits until the credit is at least `bytes`, then subtracts `bytes`. Chunks are not split, because a slow reader
   * would receive ever smaller chunks. Rejects when the signal aborts.
   */
  take(bytes: number): Promise<void>;
}

/**
 * Creates the flow control for the sender of one stream. If a chunk is larger than the reader's window, `take` waits
 * until the signal aborts.
 */
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

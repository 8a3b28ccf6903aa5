/** How much of a stream its reader has asked for and not been sent yet. */
export interface StreamCredit {
  /** The reader has room for so many bytes more. */
  grant(bytes: number): void;
  /**
   * Resolves once the reader has room for all of `bytes`, which are then spent: a piece is never cut to the room that
   * is left, or a slow reader would be sent ever smaller ones. Rejects when the signal aborts.
   */
  take(bytes: number): Promise<void>;
}

/** One stream's credit at the sender. `bytes` of one piece must not exceed the reader's window. */
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

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Time within which two signals count as one, in ms. After Ctrl-C, the terminal and the launcher each send a signal to
 * this process.
 */
const DUPLICATE_WINDOW_MS = 250;

export interface StopHandlers {
  first(signal: NodeJS.Signals): void;
  again(): void;
}

/**
 * Calls `first` for the first stop signal, and `again` for each later signal outside the duplicate window. Returns a
 * function that removes the listeners.
 */
export function onStopSignals({ first, again }: StopHandlers): () => void {
  let firstAt: number | undefined;
  const receive = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      first(signal);
    } else if (now - firstAt > DUPLICATE_WINDOW_MS) again();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, receive);
  return () => {
    for (const signal of STOP_SIGNALS) process.off(signal, receive);
  };
}

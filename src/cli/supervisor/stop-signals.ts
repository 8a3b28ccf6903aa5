const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The launcher passes on a Ctrl-C that the terminal has sent us as well: one press must not count as two. */
const SAME_PRESS_MS = 250;

export interface StopHandlers {
  first(signal: NodeJS.Signals): void;
  again(): void;
}

/** Tells the first stop signal from an impatient second one. Returns the function that stops listening. */
export function onStopSignals({ first, again }: StopHandlers): () => void {
  let since: number | undefined;
  const receive = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (since === undefined) {
      since = now;
      first(signal);
    } else if (now - since > SAME_PRESS_MS) again();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, receive);
  return () => {
    for (const signal of STOP_SIGNALS) process.off(signal, receive);
  };
}

import { constants } from 'node:os';

export interface Interruption {
  /** Aborts at the first Ctrl-C or SIGTERM. A second signal kills the process. */
  signal: AbortSignal;
  /** Returns the exit code: 130 or 143 after an interruption, and 0 otherwise. */
  exitCode(): number;
}

/**
 * Returns the interruption state for a command that runs until the user interrupts it, so that the command can clean
 * up.
 */
export function interruption(): Interruption {
  const controller = new AbortController();
  let received: NodeJS.Signals | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    received ??= signal;
    controller.abort();
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  return {
    signal: controller.signal,
    exitCode: () => (received ? 128 + constants.signals[received] : 0),
  };
}

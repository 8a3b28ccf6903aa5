import { constants } from 'node:os';

export interface Interruption {
  /** Aborts at the first Ctrl-C or SIGTERM. A second signal kills the process. */
  signal: AbortSignal;
  /** Returns the exit code: 130 or 143 after an interruption, and 0 otherwise. */
  exitCode(): number;
}

/** Handles SIGINT and SIGTERM, so that a long-running command can clean up after an interruption. */
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

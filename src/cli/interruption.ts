import { constants } from 'node:os';

export interface Interruption {
  /** Fires at the first Ctrl-C or SIGTERM; a second one ends the process as signals do. */
  signal: AbortSignal;
  /** What the command ends with: 130 or 143 when it was interrupted, else 0. */
  exitCode(): number;
}

/** For commands that run until they are told to stop and have a last word to say. */
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

import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { lostProcess, type ProcessExit } from './exit-reason.ts';

/** Number of consecutive crashes while loading after which new processes are delayed. */
const MAX_CRASHES = 3;
const FIRST_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;

/**
 * Delays new processes of a plugin that crashes while loading. Without the delay, each call would start another
 * process.
 */
export interface LoadCrashes {
  readonly isClean: boolean;
  /** Records the end of a process. If the start of new processes is now delayed, returns the error for queued calls. */
  note(exit: ProcessExit): PlatformError | undefined;
  reset(): void;
  /** Throws an error with `Retry-After` while new processes are delayed. The error has the code of the latest crash. */
  requireNotDelayed(): void;
}

export function createLoadCrashes({ pluginId, clock }: { pluginId: string; clock: Clock }): LoadCrashes {
  let crashes = 0;
  let nextStartAt = 0;
  let last: PlatformError | undefined;

  function backoffError(): PlatformError {
    const seconds = Math.max(1, Math.ceil((nextStartAt - clock.monotonic()) / 1000));
    return new PlatformError(
      last?.code ?? 'EXECUTION_ERROR',
      `Plugin ${pluginId} crashed ${crashes} times in a row while loading; the next attempt is in ${seconds} s. Last error: ${last?.message}`,
      {
        headers: { 'retry-after': String(seconds) },
        details: { ...last?.details, retryAfterSeconds: seconds },
      },
    );
  }
  return {
    get isClean() {
      return crashes === 0;
    },
    note(exit) {
      if (exit.hadLoaded || exit.ended?.kind === 'idle' || exit.ended?.kind === 'closing') return undefined;
      crashes++;
      last = lostProcess(exit, pluginId);
      if (crashes < MAX_CRASHES) return undefined;
      const backoffMs = FIRST_BACKOFF_MS * 2 ** Math.min(16, crashes - MAX_CRASHES);
      nextStartAt = clock.monotonic() + Math.min(MAX_BACKOFF_MS, backoffMs);
      return backoffError();
    },
    reset() {
      crashes = 0;
    },
    requireNotDelayed() {
      if (crashes >= MAX_CRASHES && clock.monotonic() < nextStartAt) throw backoffError();
    },
  };
}

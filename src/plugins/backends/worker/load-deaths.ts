import type { Clock } from '../../../kit/clock.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { lostProcess, type ProcessExit } from './exit-reason.ts';

/** Consecutive crashes at load before new starts are delayed. */
const TOLERATED_DEATHS = 3;
const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;

/** Backoff for plugins that crash while loading: otherwise each call would start another process. */
export interface LoadDeaths {
  /** No process has crashed since the last successful load. */
  readonly isClean: boolean;
  /** Returns the error for waiting calls while starts are delayed; undefined otherwise. */
  note(exit: ProcessExit): PlatformError | undefined;
  /** Resets the count after a successful load. */
  forget(): void;
  /** Throws with Retry-After while starts are delayed. */
  refuseMeanwhile(): void;
}

export function createLoadDeaths({ pluginId, clock }: { pluginId: string; clock: Clock }): LoadDeaths {
  let deaths = 0;
  let nextStartAt = 0;
  let last: PlatformError | undefined;

  function putOff(): PlatformError {
    const seconds = Math.max(1, Math.ceil((nextStartAt - clock.monotonic()) / 1000));
    return new PlatformError(
      last?.code ?? 'EXECUTION_ERROR',
      `Plugin ${pluginId} crashed ${deaths} times in a row while loading; the next attempt is in ${seconds} s. Last error: ${last?.message}`,
      {
        headers: { 'retry-after': String(seconds) },
        details: { ...last?.details, retryAfterSeconds: seconds },
      },
    );
  }
  return {
    get isClean() {
      return deaths === 0;
    },
    note(exit) {
      if (exit.hadLoaded || exit.ended?.kind === 'idle' || exit.ended?.kind === 'closing') return undefined;
      deaths++;
      last = lostProcess(exit, pluginId);
      if (deaths < TOLERATED_DEATHS) return undefined;
      const backoffMs = FIRST_BACKOFF_MS * 2 ** Math.min(16, deaths - TOLERATED_DEATHS);
      nextStartAt = clock.monotonic() + Math.min(LONGEST_BACKOFF_MS, backoffMs);
      return putOff();
    },
    forget() {
      deaths = 0;
    },
    refuseMeanwhile() {
      if (deaths >= TOLERATED_DEATHS && clock.monotonic() < nextStartAt) throw putOff();
    },
  };
}

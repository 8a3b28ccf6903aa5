import type { Clock } from '../../../kit/clock.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { lostProcess, type ProcessExit } from './exit-reason.ts';

/** Deaths at load, in a row, that are borne before new starts are put off. */
const TOLERATED_DEATHS = 3;
const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;

/** Counts a plugin's processes that died while its code was loaded: each call would cost the start of another. */
export interface LoadDeaths {
  /** Nothing has died since its code was last loaded without harm. */
  readonly isClean: boolean;
  /** What to tell those who wait, once starts are put off; undefined while they go on. */
  note(exit: ProcessExit): PlatformError | undefined;
  /** Its code was loaded without harm. */
  forget(): void;
  /** Throws while starts are put off, with Retry-After. */
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
      `Plugin ${pluginId} died ${deaths} times in a row while it was loaded; it is tried again in ${seconds} s. The last time: ${last?.message}`,
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

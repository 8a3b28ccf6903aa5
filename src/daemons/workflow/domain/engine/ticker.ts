import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';

/** Maximum sleep: the wall clock may be changed, and other processes may change rows. */
const LONGEST_SLEEP_MS = seconds(1);
const SHORTEST_SLEEP_MS = 5;

export interface Ticker {
  /** Reports that something falls due at `at`, which may be earlier than the armed timer. */
  notice(at: number): void;
  /** Calls `look` now. Settles when it is done. */
  tick(): Promise<void>;
  stop(): Promise<void>;
}

/** Calls `look` when something falls due, and at least every second. `look` returns the next due time. */
export function createTicker(deps: { clock: Clock; logger: Logger; look(): Promise<number | null> }): Ticker {
  const { clock, logger, look } = deps;
  let cancel: (() => void) | null = null;
  let armedFor = Number.POSITIVE_INFINITY;
  let running: Promise<void> | undefined;
  let again = false;
  let stopped = false;

  function arm(at: number): void {
    const sleep = Math.min(LONGEST_SLEEP_MS, Math.max(SHORTEST_SLEEP_MS, at - clock.now()));
    cancel?.();
    armedFor = clock.now() + sleep;
    cancel = clock.after(sleep, () => void tick());
  }

  function tick(): Promise<void> {
    if (stopped) return Promise.resolve();
    if (running) {
      again = true;
      return running;
    }
    running = lookOn().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function lookOn(): Promise<void> {
    let next: number | null = null;
    do {
      again = false;
      try {
        next = await look();
      } catch (error) {
        logger.error(`Due runs could not be looked up: ${messageOf(error)}`, { error });
      }
    } while (again && !stopped);
    if (!stopped) arm(next ?? Number.POSITIVE_INFINITY);
  }

  return {
    notice(at) {
      if (stopped) return;
      if (running) again = true;
      else if (at <= clock.now()) void tick();
      else if (at < armedFor) arm(at);
    },
    tick,
    async stop() {
      stopped = true;
      cancel?.();
      await running;
    },
  };
}

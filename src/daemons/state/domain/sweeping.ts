import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { KeyValueStore } from '../../../store/ports/index.ts';

export interface SweepingDeps {
  store: Pick<KeyValueStore, 'sweep'>;
  clock: Clock;
  logger: Logger;
}

const INTERVAL_MS = minutes(1);
/** Entries deleted per transaction, so that writes of callers can interleave. */
const ENTRIES_A_STEP = 1000;

/**
 * Starts a task that deletes expired entries every minute, only to free space. Readers already treat expired entries as
 * absent.
 */
export function startSweeping({ store, clock, logger }: SweepingDeps): { stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  let stopped = false;

  async function sweep(): Promise<void> {
    try {
      while (!stopped && (await store.sweep(ENTRIES_A_STEP)) === ENTRIES_A_STEP);
    } catch (error) {
      logger.diagnostic({
        domain: 'state',
        event: 'state.sweep_failed',
        level: 'warn',
        reasonCode: 'STORE_ERROR',
        message: 'Expired entries could not be deleted; retrying in a minute',
        outcome: 'failed',
        error,
      });
    }
    running = undefined;
  }
  const cancel = every(clock, INTERVAL_MS, () => {
    running ??= sweep();
  });
  return {
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}

import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './store-error.ts';

/** Maximum time that SQLite itself waits for a lock. The value is short because this wait blocks the event loop. */
export const BLOCKING_WAIT_MS = 15;

/**
 * Default total time for all retries of a call. Must exceed the time for which a checkpoint or a backup locks the file.
 */
export const BUSY_TIMEOUT_MS = 10_000;

const MAX_PAUSE_MS = 100;

/**
 * Retries a call while another process holds the lock, until the pauses add up to `timeoutMs`. Pauses use wall-clock
 * time even in tests with a fake clock.
 */
export async function retryWhileBusy<T>(run: () => T, timeoutMs: number): Promise<T> {
  for (let waited = 0, pause = 1; ; waited += pause, pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || waited >= timeoutMs) throw error;
    }
    await sleep(pause);
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './store-error.ts';

/**
 * Maximum time that SQLite itself waits for a lock. The value is short because this wait blocks the event loop. A
 * commit by another process takes about 15 ms.
 */
export const BLOCKING_WAIT_MS = 15;

/**
 * Default total time for all retries of a call. The value exceeds the time that a checkpoint or a backup step locks the
 * file.
 */
export const BUSY_TIMEOUT_MS = 10_000;

const MAX_PAUSE_MS = 100;

/**
 * Retries a call while another process holds the lock. Pauses use real time even in tests with a fake clock, because
 * the lock does not depend on the fake clock.
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

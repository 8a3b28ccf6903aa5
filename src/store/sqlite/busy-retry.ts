import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './store-error.ts';

/**
 * Maximum time that SQLite itself waits for a lock. It is short, about one commit of another process, because this wait
 * blocks the event loop.
 */
export const BLOCKING_WAIT_MS = 15;

/** Default total time of all retries of a call. No checkpoint or backup step should hold the lock for longer. */
export const BUSY_TIMEOUT_MS = 10_000;

const MAX_PAUSE_MS = 100;

/**
 * Retries while another process holds the lock. The pauses use real time, because the other process does not run on a
 * test's clock.
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

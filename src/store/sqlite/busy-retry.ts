import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './store-error.ts';

/**
 * Maximum time that SQLite itself waits for a lock. The wait blocks the event loop, so it is only as long as one
 * commit of another process.
 */
export const BLOCKING_WAIT_MS = 15;

/**
 * Default total time that a call is retried: longer than any checkpoint or backup step should hold the lock.
 */
export const BUSY_TIMEOUT_MS = 10_000;

const MAX_PAUSE_MS = 100;

/**
 * Retries while another process holds the lock, yielding to the event loop in between. Uses real time even
 * under a test clock, since it waits for another process.
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

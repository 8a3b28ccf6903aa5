import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './store-error.ts';

/** How long SQLite itself may wait for a lock: this wait stops the whole event loop, so it covers a neighbour's commit and no more. */
export const BLOCKING_WAIT_MS = 15;

/** How long a call is tried in all before it fails: longer than any checkpoint or backup step should hold the lock. */
export const BUSY_PATIENCE_MS = 10_000;

const LONGEST_PAUSE_MS = 100;

/**
 * Runs again and again while another process holds the lock, giving the event loop back in between. Paced by real
 * time even under a hand-moved clock: it waits for another process, not for a moment.
 */
export async function whileBusy<T>(run: () => T, patienceMs: number): Promise<T> {
  for (let waited = 0, pause = 1; ; waited += pause, pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || waited >= patienceMs) throw error;
    }
    await sleep(pause);
  }
}

import { getPriority, setPriority } from 'node:os';

const BACKGROUND_NICENESS = 10;

/**
 * Lowers the priority of the calling thread. Does nothing outside Linux, where the call would affect the whole process.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    // If the platform was started with an even lower priority, the thread keeps that one. Raising it is not permitted.
    if (getPriority(0) < BACKGROUND_NICENESS) setPriority(0, BACKGROUND_NICENESS);
  } catch {
    // Some sandboxes forbid the call. The thread then keeps its priority.
  }
}

import { getPriority, setPriority } from 'node:os';

const BACKGROUND_NICENESS = 10;

/** Lowers the priority of a background thread on Linux. Other systems would change the whole process. */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    // An even lower priority, inherited from the platform, stays: raising it is not permitted.
    if (getPriority(0) < BACKGROUND_NICENESS) setPriority(0, BACKGROUND_NICENESS);
  } catch {
    // Some sandboxes forbid the call. The thread then keeps its priority.
  }
}

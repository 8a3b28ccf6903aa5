import { getPriority, setPriority } from 'node:os';

const BACKGROUND_NICENESS = 10;

/**
 * Lowers the priority of the calling thread on Linux. Does nothing on other systems, where the call would affect the
 * whole process.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    // A thread that already has a lower priority is unchanged, because raising a priority is not permitted.
    if (getPriority(0) < BACKGROUND_NICENESS) setPriority(0, BACKGROUND_NICENESS);
  } catch {
    // Some sandboxes forbid the system call. The thread then keeps its priority.
  }
}

import { type Clock, every } from '../../../kit/clock.ts';
import { minutes } from '../../../kit/duration.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { WorkflowStore } from '../../../store/ports/index.ts';

const INTERVAL_MS = minutes(1);
/** What one transaction looks at and deletes: runs' own writes come in between. */
const RUNS_A_STEP = 200;

/** Forgets runs that ended long ago, a few at a time. */
export function startHousekeeping(deps: {
  store: Pick<WorkflowStore, 'prune'>;
  clock: Clock;
  logger: Logger;
  keepMs: number;
}): { stop(): Promise<void> } {
  const { store, clock, logger, keepMs } = deps;
  let running: Promise<void> | undefined;
  let stopped = false;

  async function prune(): Promise<void> {
    try {
      for (let after: number | null = 0; after !== null && !stopped; ) {
        const now = clock.now();
        ({ next: after } = await store.prune({
          finishedBefore: now - keepMs,
          now,
          after,
          limit: RUNS_A_STEP,
        }));
      }
    } catch (error) {
      logger.diagnostic({
        domain: 'workflow',
        event: 'workflow.prune_failed',
        level: 'warn',
        reasonCode: 'STORE_ERROR',
        message: 'Old runs could not be deleted; tried again in a minute',
        outcome: 'failed',
        error,
      });
    }
    running = undefined;
  }
  const cancel = every(clock, INTERVAL_MS, () => {
    running ??= prune();
  });
  return {
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}

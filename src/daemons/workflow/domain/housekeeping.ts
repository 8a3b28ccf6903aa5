import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { WorkflowStore } from '../../../store/ports/index.ts';

const INTERVAL_MS = minutes(1);
/** Number of runs pruned per transaction. Short transactions let writes of active runs proceed in between. */
const RUNS_A_STEP = 200;
const KEYS_A_STEP = 1000;

/** Starts a periodic task that deletes runs past their retention and definitions that no run uses. */
export function startHousekeeping(deps: {
  store: Pick<WorkflowStore, 'prune' | 'pruneKeys' | 'pruneDefinitions'>;
  clock: Clock;
  logger: Logger;
  keepMs: number;
}): { stop(): Promise<void> } {
  const { store, clock, logger, keepMs } = deps;
  let running: Promise<void> | undefined;
  let stopped = false;

  async function prune(): Promise<void> {
    try {
      const now = clock.now();
      const finishedBefore = now - keepMs;
      const inUse = new Set<string>();
      for (let after: number | null = 0; after !== null; ) {
        if (stopped) return;
        const looked = await store.prune({ finishedBefore, after, limit: RUNS_A_STEP });
        for (const hash of looked.inUse) inUse.add(hash);
        after = looked.next;
      }
      while (!stopped && (await store.pruneKeys({ now, limit: KEYS_A_STEP })) === KEYS_A_STEP);
      // `inUse` is complete, because the loop above has checked every run that can use a definition last used before
      // `finishedBefore`.
      while (!stopped && (await store.pruneDefinitions({ usedBefore: finishedBefore, inUse })) > 0);
    } catch (error) {
      logger.diagnostic({
        domain: 'workflow',
        event: 'workflow.prune_failed',
        level: 'warn',
        reasonCode: 'STORE_ERROR',
        message: 'Old runs could not be deleted; the next attempt follows in a minute',
        outcome: 'failed',
        error,
      });
    }
  }
  const cancel = every(clock, INTERVAL_MS, () => {
    running ??= prune().finally(() => {
      running = undefined;
    });
  });
  return {
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}

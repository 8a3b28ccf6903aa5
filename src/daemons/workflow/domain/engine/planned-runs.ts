import type { RunRecord } from '../../../../store/ports/index.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import { keyTaken } from '../starts/over-limit.ts';
import { move } from '../states.ts';
import type { EngineDeps, EngineHost } from './ports.ts';

export interface PlannedRunsDeps extends Pick<EngineDeps, 'store' | 'clock' | 'definitionOf' | 'hooks'> {
  host: Pick<EngineHost, 'offer' | 'ended' | 'supersede'>;
}

/**
 * Returns a function that queues a planned run at its start time. The same concurrency rules apply as for other runs.
 * @spec docs/workflows.md "The definition": concurrency
 */
export function createPlannedRuns({ store, clock, definitionOf, hooks, host }: PlannedRunsDeps) {
  async function strategyOf({ concurrencyKey, definitionHash }: RunRecord) {
    if (concurrencyKey === null) return undefined;
    try {
      return (await definitionOf(definitionHash)).definition.concurrency?.strategy;
    } catch (error) {
      if (!isLostDefinition(error)) throw error;
      // The error is ignored here, because the claim of the run fails with the same error.
      return undefined;
    }
  }

  return async function release(run: RunRecord): Promise<void> {
    const strategy = await strategyOf(run);
    const { code, message, details } = keyTaken(run);
    const released = await store.queue.release(run.seq, {
      at: clock.now(),
      strategy,
      refused: { status: move('run', 'queued', 'failed', 'engine'), error: { code, message, details } },
    });
    if (!released) return;
    hooks.changed(run.id);
    if (released.run.finishedAt === null) host.offer(released.run, false);
    else host.ended(released.run);
    // The call is not awaited. Stopping a superseded run can take long and would delay other due runs.
    void host.supersede(released.supersedes);
  };
}

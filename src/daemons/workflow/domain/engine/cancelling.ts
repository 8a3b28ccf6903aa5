import type { Clock } from '../../../../kit/clock.ts';
import { seconds } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { RunRecord, RunStore } from '../../../../store/ports/index.ts';
import { cleansUp } from '../definition/cleans-up.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { isFinal } from '../states.ts';
import type { CancelResult } from './engine-ports.ts';

export interface CancellingDeps {
  store: { runs: Pick<RunStore, 'find' | 'openChildren' | 'cancelIdle' | 'beginCleanUp'> };
  clock: Clock;
  logger: Logger;
  active: ReadonlyMap<string, ActiveRun>;
  /** Settles once a run that is being read is in `active`, or gone. */
  opening: ReadonlyMap<string, Promise<void>>;
  /** Throws for one that cannot be read or compiled any more. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  offer(run: RunRecord, fresh: boolean): void;
  /** There is something due. */
  lookAgain(): void;
  /** False after the stop of the engine. */
  isWorking(): boolean;
  ended(run: RunRecord): void;
  changed(runId: string): void;
}

const CANCEL_TRIES = 50;
const RETRY_MS = seconds(1);

/** Cancels runs, wherever they are: in memory, on their way there, or only in the store; and their children with them. */
export function createCancelling({ store, clock, logger, active, opening, ...deps }: CancellingDeps) {
  /** Throws WORKFLOW_ALREADY_CANCELLED, and CONFLICT for one that never stands still. */
  async function cancel({ id, tenantId }: RunRecord): Promise<CancelResult> {
    for (let tries = 0; tries < CANCEL_TRIES; tries++) {
      await opening.get(id);
      const one = active.get(id);
      if (one && (await one.cancel())) return { cancelled: true, status: one.run.status };
      // Parked, ended or about to be: what is written by now decides.
      if (one && !['cancelling', 'cancelled'].includes(one.run.status)) await one.left;
      const run = await store.runs.find(tenantId, id);
      if (!run || run.status === 'cancelled' || (run.status === 'cancelling' && run.ending === 'cancelled'))
        throw alreadyCancelled(id);
      // Its time was up, and it cleans up already.
      if (run.status === 'cancelling' || isFinal(run.status)) return { cancelled: false, status: run.status };
      if (run.startedAt !== null && (await endsLater(run))) {
        if (!(await store.runs.beginCleanUp(run.seq, clock.now()))) continue;
        deps.changed(id);
        deps.lookAgain();
        return { cancelled: true, status: 'cancelling' };
      }
      const { cancelled, promoted } = await store.runs.cancelIdle(run.seq, clock.now());
      if (!cancelled) continue;
      for (const next of promoted) deps.offer(next, false);
      deps.changed(id);
      deps.ended({ ...run, status: 'cancelled', finishedAt: clock.now() });
      await cancelChildren(id);
      return { cancelled: true, status: 'cancelled' };
    }
    throw new PlatformError('CONFLICT', `Run ${id} changes too fast to be cancelled; try again.`);
  }

  /** Whether it has something to clean up, or has children that end before it. */
  async function endsLater({ id, definitionHash }: RunRecord): Promise<boolean> {
    try {
      const workflow = await deps.definitionOf(definitionHash);
      return cleansUp(workflow) || (await store.runs.openChildren(id)).length > 0;
    } catch (error) {
      if (isLostDefinition(error)) return false;
      throw error;
    }
  }

  /** A failure is logged: the parent has ended all the same, and the next start of the service looks for what is left. */
  async function cancelChildren(id: string): Promise<void> {
    try {
      for (const child of await store.runs.openChildren(id)) await cancelById(child);
    } catch (error) {
      logger.error(`The children of run ${id} could not be cancelled`, { error });
    }
  }

  /**
   * For those whom no caller waits for: children, and runs that gave way to another one of their key. False if that failed: it is
   * tried again until it has succeeded, for other runs wait for their ends.
   */
  async function cancelById(id: string): Promise<boolean> {
    try {
      const run = await store.runs.find(null, id);
      if (run && !isFinal(run.status)) await cancel(run);
      return true;
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'WORKFLOW_ALREADY_CANCELLED') return true;
      const what = `Run ${id} could not be cancelled with its parent, or for another of its key; tried again in a second`;
      logger.error(what, { error });
      clock.after(RETRY_MS, () => {
        if (deps.isWorking()) void cancelById(id);
      });
      return false;
    }
  }

  /** Another run takes the place of these under their concurrency key. The store knows, so that a crash leaves none of them. */
  async function supersede(ids: readonly string[]): Promise<void> {
    for (const id of ids) await cancelById(id);
  }

  return { cancel, cancelById, cancelChildren, supersede };
}

function alreadyCancelled(id: string): PlatformError {
  return new PlatformError('WORKFLOW_ALREADY_CANCELLED', `Run ${id} was cancelled before.`, {
    details: { runId: id },
  });
}

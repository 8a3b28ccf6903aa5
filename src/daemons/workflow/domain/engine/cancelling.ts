import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
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
  /** Runs being read; each promise settles once the run is in `active`, or was dropped. */
  opening: ReadonlyMap<string, Promise<void>>;
  /** Throws for a definition that cannot be read or compiled any more. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  offer(run: RunRecord, fresh: boolean): void;
  /** Triggers a look at due runs. */
  lookAgain(): void;
  /** False once the engine has stopped. */
  isWorking(): boolean;
  ended(run: RunRecord): void;
  changed(runId: string): void;
}

const CANCEL_TRIES = 50;
const RETRY_MS = seconds(1);

/** Cancels runs that are in memory, being read, or only stored, together with their children. */
export function createCancelling({ store, clock, logger, active, opening, ...deps }: CancellingDeps) {
  /** Throws WORKFLOW_ALREADY_CANCELLED, and CONFLICT for a run that changes on every try. */
  async function cancel({ id, tenantId }: RunRecord): Promise<CancelResult> {
    for (let tries = 0; tries < CANCEL_TRIES; tries++) {
      await opening.get(id);
      const one = active.get(id);
      if (one && (await one.cancel())) return { cancelled: true, status: one.run.status };
      // The run is parked or ended, or is about to be; the stored status decides.
      if (one && !['cancelling', 'cancelled'].includes(one.run.status)) await one.left;
      const run = await store.runs.find(tenantId, id);
      if (!run || run.status === 'cancelled' || (run.status === 'cancelling' && run.ending === 'cancelled'))
        throw alreadyCancelled(id);
      // The run timed out and is already cleaning up.
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

  /** Whether the run has clean-up steps, or children that end before it. */
  async function endsLater({ id, definitionHash }: RunRecord): Promise<boolean> {
    try {
      const workflow = await deps.definitionOf(definitionHash);
      return cleansUp(workflow) || (await store.runs.openChildren(id)).length > 0;
    } catch (error) {
      if (isLostDefinition(error)) return false;
      throw error;
    }
  }

  /** Logs failures instead of throwing them: the parent has ended, and the next boot cancels remaining children. */
  async function cancelChildren(id: string): Promise<void> {
    try {
      for (const child of await store.runs.openChildren(id)) await cancelById(child);
    } catch (error) {
      logger.error(`The children of run ${id} could not be cancelled`, { error });
    }
  }

  /**
   * Cancels runs without a caller: children, and runs superseded under their concurrency key. Returns false on failure,
   * and retries until it succeeds, because other runs wait for the end.
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

  /** Cancels runs superseded under their concurrency key. The store records them, so that a crash loses none. */
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

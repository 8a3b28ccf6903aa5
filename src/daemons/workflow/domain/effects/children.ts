import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { RunEvent } from '../run/events.ts';
import type { StepKey } from '../run/state.ts';
import type { Inspections } from './inspections.ts';

export interface ChildrenDeps {
  runId: string;
  clock: Clock;
  logger: Logger;
  inspections: Inspections;
  /** Returns the runs among `ids` that have ended. */
  finishedRuns(ids: readonly string[]): Promise<RunRecord[]>;
  /** Returns the ids of the unfinished child runs of a run. */
  openChildren(runId: string): Promise<string[]>;
  /** Cancels a child run. Resolves to true once the cancellation is durable, or to false on failure. */
  cancelChild(runId: string): Promise<boolean>;
  dispatch(event: RunEvent): void;
}

const PAUSE_AFTER_FAILURE_MS = seconds(1);

/** Finds and cancels child runs. */
export class Children {
  readonly #deps: ChildrenDeps;
  #due: Array<{ step: StepKey; runId: string }> = [];

  constructor(deps: ChildrenDeps) {
    this.#deps = deps;
  }

  /** Requests the lookup of a child run. All requests in one event loop turn share one read of the store. */
  find(step: StepKey, runId: string): void {
    this.#due.push({ step, runId });
    if (this.#due.length === 1) queueMicrotask(() => void this.#findDue());
  }

  /**
   * Cancels a child run, then reports the result to the step. A cancellation is reported only after the store has
   * persisted the change, so that a crash cannot lose the cancellation. A failure is reported after a pause.
   */
  async cancel(runId: string, step: StepKey | null): Promise<void> {
    const isCancelled = await this.#deps.cancelChild(runId);
    if (step === null) return;
    if (!isCancelled) await this.#pause();
    this.#deps.dispatch({ type: 'child.cancelled', step, isCancelled });
  }

  async readOpen(ended: string[]): Promise<void> {
    const { runId, openChildren, logger, dispatch } = this.#deps;
    let open: string[] | null = null;
    try {
      open = await openChildren(runId);
    } catch (error) {
      logger.error(`The children of run ${runId} could not be read; the next attempt follows in a second`, {
        error,
      });
      await this.#pause();
    }
    dispatch({ type: 'children.open', open, ended });
  }

  async #findDue(): Promise<void> {
    const { finishedRuns, inspections, logger, dispatch } = this.#deps;
    const due = this.#due;
    this.#due = [];
    try {
      const ended = new Map((await finishedRuns(due.map(({ runId }) => runId))).map((run) => [run.id, run]));
      const found = due.map(({ step, runId }) => ({
        ...{ step, runId, child: ended.get(runId) ?? null },
        facts: inspections.factsOf(step),
      }));
      dispatch({ type: 'children.found', found });
    } catch (error) {
      logger.error('The ended child runs could not be read; the next attempt follows in a second', { error });
      // The lookups count as in flight during the pause, so that the run stays in memory.
      await this.#pause();
      dispatch({ type: 'children.unknown', steps: due.map(({ step }) => step) });
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => void this.#deps.clock.after(PAUSE_AFTER_FAILURE_MS, resolve));
  }
}

import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { JobPart, StepPart } from './run-parts.ts';
import type { RunState } from './run-state.ts';

export interface OpenChildrenDeps {
  run: Pick<RunRecord, 'id'>;
  state: RunState;
  clock: Clock;
  logger: Logger;
  /** Returns the ids of a run's unfinished children. */
  openChildren(runId: string): Promise<string[]>;
  cancelChild(runId: string): void;
}

const PAUSE_AFTER_FAILURE_MS = seconds(1);

/**
 * Unfinished children of an ending run, which ends after them. They are read from the store: after a crash, or without
 * a wait, its steps may not know them.
 * @spec docs/decisions/0171
 */
export class OpenChildren {
  readonly #deps: OpenChildrenDeps;
  #open: ReadonlySet<string> | null = null;
  #isLooking = false;

  constructor(deps: OpenChildrenDeps) {
    this.#deps = deps;
  }

  get areAwaited(): boolean {
    return this.#open !== null && this.#open.size > 0;
  }

  /** Whether all children have ended; undefined while the store is read. */
  haveEnded(jobs: readonly JobPart[]): boolean | undefined {
    if (!jobs.some(({ steps }) => steps.some(mayHaveChild))) return true;
    const { endedChildren } = this.#deps.state;
    const open = this.#open;
    if (!this.#isLooking && (open === null || [...open].some((id) => endedChildren.has(id))))
      void this.#look();
    return this.#isLooking ? undefined : open?.size === 0;
  }

  async #look(): Promise<void> {
    const { run, state, clock, logger, openChildren, cancelChild } = this.#deps;
    this.#isLooking = true;
    const ended = [...(this.#open ?? [])].filter((id) => state.endedChildren.has(id));
    try {
      const open = await openChildren(run.id);
      for (const id of ended) state.endedChildren.delete(id);
      for (const id of open) if (!this.#open?.has(id)) cancelChild(id);
      this.#open = new Set(open);
    } catch (error) {
      logger.error(`The children of run ${run.id} could not be read; tried again in a second`, { error });
      await new Promise<void>((resolve) => clock.after(PAUSE_AFTER_FAILURE_MS, resolve));
    }
    this.#isLooking = false;
    if (!state.departure) state.advance();
  }
}

const mayHaveChild = ({ step, record }: StepPart): boolean => step.uses === 'workflow' && record.attempts > 0;

import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { RunJournal } from '../run/run-journal.ts';
import type { StepPart } from '../run/run-parts.ts';
import type { RunState } from '../run/run-state.ts';

export interface ChildEndsDeps {
  state: RunState;
  journal: RunJournal;
  clock: Clock;
  logger: Logger;
  /** Returns those of the given runs that have ended. */
  finishedRuns(ids: readonly string[]): Promise<RunRecord[]>;
  /** Cancels a child; durable once resolved. Resolves to false when the cancel failed. */
  cancelChild(runId: string): Promise<boolean>;
  /** Settles the step of an ended child. */
  settle(part: StepPart, child: RunRecord): void;
}

const PAUSE_AFTER_FAILURE_MS = seconds(1);

/**
 * Looks up ended children, with one read for all pending lookups. An unfinished child is looked up again only after its
 * end is reported, so thousands of children cost one lookup each.
 */
export class ChildEnds {
  readonly #deps: ChildEndsDeps;
  #due: StepPart[] = [];

  constructor(deps: ChildEndsDeps) {
    this.#deps = deps;
  }

  look(part: StepPart): void {
    const { state } = this.#deps;
    const runId = part.wait?.runId;
    if (!runId || state.draining || part.looking) return;
    if (this.#isOpen(part)) return;
    state.endedChildren.delete(runId);
    part.looking = true;
    this.#due.push(part);
    if (this.#due.length === 1) queueMicrotask(() => void this.#ask());
  }

  /** Handles a step's timeout: an ended child settles the step; any other is cancelled and cleans up. */
  expire(part: StepPart): void {
    if (!this.#isOpen(part)) this.look(part);
    else if (!this.#deps.state.draining && !part.looking) void this.#cancel(part);
  }

  /** Whether the child was unfinished at its lookup, and no end has been reported since. */
  #isOpen({ wait, openChild }: StepPart): boolean {
    return openChild !== null && openChild === wait?.runId && !this.#deps.state.endedChildren.has(openChild);
  }

  /** Cancels the child durably before it marks the wait: after a crash in between, the step is due again. */
  async #cancel(part: StepPart): Promise<void> {
    const { state, clock, journal } = this.#deps;
    part.looking = true;
    const isCancelled = await this.#deps.cancelChild(part.openChild!);
    if (!isCancelled) await new Promise<void>((resolve) => clock.after(PAUSE_AFTER_FAILURE_MS, resolve));
    part.looking = false;
    if (state.departure) return;
    if (isCancelled && part.record.status === 'waiting' && part.wait) {
      part.wait = { ...part.wait, timedOut: true };
      part.record.wait = JSON.stringify(part.wait);
      part.record.wakeAt = null;
      journal.touch(part);
    }
    state.advance();
  }

  async #ask(): Promise<void> {
    const { state, clock } = this.#deps;
    const parts = this.#due;
    this.#due = [];
    const found = await this.#read(parts.map(({ wait }) => wait!.runId!));
    // `looking` stays set during the pause, so that the run is not parked.
    if (!found) await new Promise<void>((resolve) => clock.after(PAUSE_AFTER_FAILURE_MS, resolve));
    const ended = found && new Map(found.map((run) => [run.id, run]));
    for (const part of parts) {
      part.looking = false;
      if (ended) this.#answer(part, ended);
    }
    if (!state.departure) state.advance();
  }

  async #read(ids: string[]): Promise<RunRecord[] | undefined> {
    try {
      return await this.#deps.finishedRuns(ids);
    } catch (error) {
      this.#deps.logger.error('The ends of children could not be read; tried again in a second', { error });
      return undefined;
    }
  }

  #answer(part: StepPart, ended: ReadonlyMap<string, RunRecord>): void {
    if (this.#deps.state.departure || part.record.status !== 'waiting') return;
    const runId = part.wait!.runId!;
    const child = ended.get(runId);
    if (child) this.#deps.settle(part, child);
    else part.openChild = runId;
  }
}

import type { RunEnding } from '../../../../contracts/index.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { CodeDriver } from '../code/code-driver.ts';
import { isFinal } from '../states.ts';
import { type CleanUpLimit, type Hold, holdOf } from './clean-up-limit.ts';
import type { CleanUpOutcome } from './ending-error.ts';
import type { OpenChildren } from './open-children.ts';
import type { RunJournal } from './run-journal.ts';
import type { JobPart } from './run-parts.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { RunState } from './run-state.ts';

export interface CleanUpDeps {
  run: RunRecord;
  state: RunState;
  journal: RunJournal;
  recorder: RunRecorder;
  limit: CleanUpLimit;
  children: OpenChildren;
  code: Pick<CodeDriver, 'hold'> | null;
}

/**
 * Clean-up phase of a run that was cancelled or timed out, with its own time limit.
 * @spec docs/workflows.md "Cancelling and clean-up"
 */
export class CleanUp {
  readonly #deps: CleanUpDeps;

  constructor(deps: CleanUpDeps) {
    this.#deps = deps;
  }

  begin(how: RunEnding, by: 'engine' | 'caller'): void {
    const { run, state, recorder } = this.#deps;
    state.ending = how;
    run.ending = how;
    recorder.setRun('cancelling', by, how === 'timed_out' ? { reason: 'timeout' } : undefined);
  }

  /** Whether the clean-up limit has passed; the remaining steps are then stopped. */
  isOverdue(jobs: readonly JobPart[]): boolean {
    const { run, state, limit } = this.#deps;
    return state.ending !== null && limit.isOver(run, this.#holdOf(jobs));
  }

  /** Starts, pauses or resumes the clean-up timer of the run, or those of its jobs. */
  count(jobs: readonly JobPart[]): void {
    const { run, state, limit, journal } = this.#deps;
    if (!state.ending) {
      for (const part of jobs)
        if (isCleaningUp(part) && limit.count(part.record, holdOf(part.steps))) journal.touch(part);
    } else if (limit.count(run, this.#holdOf(jobs))) journal.touch('run');
  }

  /** Times at which the limits pass. */
  endings(jobs: readonly JobPart[]): Array<number | null> {
    const { run, state, limit } = this.#deps;
    if (state.ending) return [limit.endsAt(run, this.#holdOf(jobs))];
    return jobs.filter(isCleaningUp).map(({ record, steps }) => limit.endsAt(record, holdOf(steps)));
  }

  outcome(jobs: readonly JobPart[]): CleanUpOutcome {
    const { run, limit } = this.#deps;
    const isOverdue = this.isOverdue(jobs);
    const pluginWaitMs = isOverdue && run.endingHeldAt !== null ? limit.maxPluginWaitMs : null;
    return { isOverdue, limitMs: limit.limitMs, pluginWaitMs };
  }

  /** Records that the run waits and has no work in flight. */
  park(): void {
    const { run, journal } = this.#deps;
    journal.touch('run');
    journal.event({ type: 'run.waiting', ...(run.wakeAt === null ? {} : { data: { wakeAt: run.wakeAt } }) });
  }

  #holdOf(jobs: readonly JobPart[]): Hold {
    const { children, code } = this.#deps;
    const hold = children.areAwaited ? 'others' : holdOf(jobs.flatMap(({ steps }) => steps));
    return code && hold !== 'others' ? (code.hold ?? hold) : hold;
  }
}

const isCleaningUp = ({ record }: JobPart): boolean => record.ending !== null && !isFinal(record.status);

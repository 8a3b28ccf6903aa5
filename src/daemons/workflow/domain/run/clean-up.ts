import type { RunEnding } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import type { Deadlines } from '../../../../kit/deadlines.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { RunJournal } from './run-journal.ts';
import type { JobPart } from './run-parts.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { RunState } from './run-state.ts';

export interface CleanUpDeps {
  run: RunRecord;
  state: RunState;
  journal: RunJournal;
  recorder: RunRecorder;
  clock: Clock;
  deadlines: Deadlines;
  /** How long it may take. */
  limitMs: number;
}

/** The phase in which a run is ended from outside, with the limit of its own. @spec docs/workflows.md "Cancelling and clean-up" */
export class CleanUp {
  readonly limitMs: number;
  readonly #deps: CleanUpDeps;
  #isOverdue = false;

  constructor(deps: CleanUpDeps) {
    this.#deps = deps;
    this.limitMs = deps.limitMs;
  }

  begin(how: RunEnding, by: 'engine' | 'caller'): void {
    const { run, state, recorder } = this.#deps;
    state.ending = how;
    run.ending = how;
    recorder.setRun('cancelling', by, how === 'timed_out' ? { reason: 'timeout' } : undefined);
  }

  /** It has taken all of its time: what is left of it is stopped. */
  get isOverdue(): boolean {
    const { endsAt } = this;
    this.#isOverdue ||= endsAt !== null && this.#deps.deadlines.isPast(endsAt);
    return this.#isOverdue;
  }

  /** Null while its time does not count. */
  get endsAt(): number | null {
    const { endingAt } = this.#deps.run;
    return endingAt === null || this.#isOverdue ? null : endingAt + this.limitMs;
  }

  /** Its time counts from now on, but for that of an operator's decision. */
  count(jobs: readonly JobPart[]): void {
    const { run, clock, deadlines, journal } = this.#deps;
    const isUndecided = jobs.some(({ steps }) => steps.some(({ wait }) => wait?.for === 'decision'));
    if (isUndecided === (run.endingAt === null)) return;
    run.endingAt = isUndecided ? null : clock.now();
    if (run.endingAt !== null) deadlines.note(run.endingAt + this.limitMs);
    journal.touch('run');
  }

  /** Nothing of it is in the air. One that the service interrupts has all of its time again. */
  park(): void {
    const { run, state, journal } = this.#deps;
    if (state.draining) run.endingAt = null;
    journal.touch('run');
    journal.event({ type: 'run.waiting', ...(run.wakeAt === null ? {} : { data: { wakeAt: run.wakeAt } }) });
  }
}

import type { EnterStep, SettleStep, StepAnswer } from '../../../contracts/index.ts';
import { type Branch, runInStep } from './branches.ts';
import { NEVER } from './replay-end.ts';
import type { ReplayLink, StepRequest } from './replay-link.ts';
import type { RunCalls } from './run-calls.ts';
import { Semaphore } from './semaphore.ts';
import { outcomeOf } from './step-ends.ts';
import { faultOf } from './step-failure.ts';

/**
 * Maximum number of concurrent step functions. Step functions make platform calls, and the number of concurrent
 * platform calls per process is limited.
 */
const MAX_STEP_FUNCTIONS = 32;
/**
 * Delay between a step's timeout and the abort of its signal. The delay lets the run's own timeout end the attempt
 * first.
 */
const SIGNAL_LAG_MS = 100;
/** Delay before the run is polled for the cancellation of a running step. Most steps end before this delay. */
const WATCH_AFTER_MS = 50;

type StepFunction = NonNullable<StepRequest['run']>;

/** Requests steps from the workflow run. Runs a step's function if the run replies with the state `run`. */
export class StepCalls {
  readonly #link: ReplayLink;
  readonly #run: RunCalls;
  readonly #watch: () => void;
  readonly #permits = new Semaphore(MAX_STEP_FUNCTIONS);
  /** Abort controllers of running step functions, keyed by step id. */
  readonly #running = new Map<string, AbortController>();

  /** The callback `watch` starts to poll the workflow run for cancellations. */
  constructor(link: ReplayLink, run: RunCalls, watch: () => void) {
    this.#link = link;
    this.#run = run;
    this.#watch = watch;
  }

  get running(): number {
    return this.#running.size;
  }

  cancel(id: string): void {
    this.#running.get(id)?.abort(new DOMException('The run was cancelled.', 'AbortError'));
  }

  /**
   * Requests a step from the workflow run. A step with a function first waits for a permit, because the request starts
   * the step's timeout.
   */
  enter(branch: Branch, step: EnterStep, run: StepRequest['run']): Promise<StepAnswer> {
    if (!run) return this.#run.ask(() => this.#link.enter(step));
    return this.#permits.run(() => this.#enterLocal(branch, step, run));
  }

  async #enterLocal(branch: Branch, step: EnterStep, run: StepFunction): Promise<StepAnswer> {
    let answer = await this.#run.ask(() => this.#link.enter(step));
    while (answer.state === 'run') answer = await this.#perform(branch, step.id, answer, run);
    return answer;
  }

  async #perform(
    branch: Branch,
    id: string,
    { attempt, idempotencyKey, timeoutMs }: Extract<StepAnswer, { state: 'run' }>,
    run: StepFunction,
  ): Promise<StepAnswer> {
    if (this.#run.isOver) return NEVER;
    const time = AbortSignal.timeout(timeoutMs + SIGNAL_LAG_MS);
    const stop = new AbortController();
    this.#running.set(id, stop);
    const watchLater = setTimeout(this.#watch, WATCH_AFTER_MS);
    const signal = AbortSignal.any([this.#link.signal, time, stop.signal]);
    const outcome = await outcomeOf(id, () =>
      runInStep(branch, id, () => run({ id, attempt, idempotencyKey, signal })),
    );
    clearTimeout(watchLater);
    this.#running.delete(id);
    try {
      return await this.#settle({ id, attempt, outcome } as SettleStep);
    } catch (error) {
      // An output that is too large to send fails only the step, and the workflow function continues.
      return this.#settle({ id, attempt, outcome: faultOf(error) } as SettleStep);
    }
  }

  #settle(step: SettleStep): Promise<StepAnswer> {
    return this.#run.ask(() => this.#link.settle(step));
  }
}

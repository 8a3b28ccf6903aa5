import type { RunEnding } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { maskTenantSecretsIn } from '../../../../kit/telemetry/redact.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { CompiledStep } from '../definition/compiled-workflow.ts';
import type { Attempt, Effect } from '../run/effects.ts';
import type { AttemptOutcome, RunEvent } from '../run/events.ts';
import type { Program } from '../run/program.ts';
import type { StepKey } from '../run/state.ts';
import { stepRunOf } from '../run/step-call.ts';
import { attemptSpan } from '../run/trace.ts';
import type { ChildRequest } from '../starts/child-runs.ts';
import type { StepCall } from '../steps/step-kind.ts';
import type { Inspections } from './inspections.ts';
import type { StepSecrets } from './step-secrets.ts';

/** Time that a step has to settle after an abort, in ms. Afterwards, the work of the step is abandoned. */
const ABORT_GRACE_MS = seconds(10);

const TIMED_OUT = new PlatformError('EXECUTION_TIMEOUT', 'The step did not end in time.');
const RUN_TIMED_OUT = new PlatformError('EXECUTION_TIMEOUT', 'The run or its job did not end in time.');
const CANCELLED = new PlatformError('EXECUTION_ERROR', 'The run was cancelled.');
export const SHUT_DOWN = new PlatformError('SERVICE_UNAVAILABLE', 'The workflow service is stopping.');

export interface AttemptDeps {
  run: RunRecord;
  program: Program;
  clock: Clock;
  inspections: Inspections;
  stepSecrets: StepSecrets;
  startChild(request: ChildRequest): Promise<string>;
  dispatch(event: RunEvent): void;
  /** Callback that is called when an attempt has ended, before the run receives the end event. */
  over(step: StepKey): void;
}

interface InFlight {
  controller: AbortController;
  stopTimeout(): void;
}

/**
 * Runs step attempts with timeout and abort. Steps whose function is part of the workflow run in the replay instead.
 */
export class Attempts {
  readonly #deps: AttemptDeps;
  readonly #inFlight = new Map<StepKey, InFlight>();

  constructor(deps: AttemptDeps) {
    this.#deps = deps;
  }

  has(step: StepKey): boolean {
    return this.#inFlight.has(step);
  }

  async start({ attempt, given }: Extract<Effect, { type: 'attempt.start' }>): Promise<void> {
    const { step } = attempt;
    const one: InFlight = { controller: new AbortController(), stopTimeout() {} };
    this.#inFlight.set(step, one);
    const outcome = 'failure' in given ? given : await this.#perform(attempt, given.input, one);
    if (this.#inFlight.get(step) !== one) return;
    this.release(step);
    const { signal } = one.controller;
    this.#deps.dispatch({
      type: 'attempt.settled',
      ...{ step, attempt: attempt.attempt, outcome },
      isExpired: signal.aborted && signal.reason === TIMED_OUT,
      facts: this.#deps.inspections.factsOf(step),
    });
  }

  abort(step: StepKey, how: RunEnding): void {
    this.#inFlight.get(step)?.controller.abort(how === 'cancelled' ? CANCELLED : RUN_TIMED_OUT);
  }

  /** Stops the timeout of an ended attempt and removes the attempt from the attempts in flight. */
  release(step: StepKey): void {
    this.#inFlight.get(step)?.stopTimeout();
    this.#inFlight.delete(step);
    this.#deps.over(step);
  }

  abortAll(): void {
    for (const { controller } of this.#inFlight.values()) controller.abort(SHUT_DOWN);
  }

  async #perform(attempt: Attempt, input: StepCall['input'], one: InFlight): Promise<AttemptOutcome> {
    const { program, inspections } = this.#deps;
    const step = program.stepAt(attempt.step);
    const { signal } = one.controller;
    try {
      if (!step.kind.reportsBegin) this.#begin(attempt, one);
      const aborted = this.#afterAbort(signal);
      if (isOwnStep(step)) return await aborted;
      const { run } = this.#deps;
      const filled = await this.#filled(input, step, signal, aborted);
      const outcome = await Promise.race([step.kind.run(this.#callOf(attempt, filled, one)), aborted]);
      return 'output' in outcome ? { output: maskTenantSecretsIn(outcome.output, run.tenantId) } : outcome;
    } catch (error) {
      const failure = inspections.failureOf(error, step);
      return { failure: { ...failure, error: maskTenantSecretsIn(failure.error, this.#deps.run.tenantId) } };
    } finally {
      one.stopTimeout();
    }
  }

  /** Returns the input with the values of its secrets, which no record contains. */
  async #filled(
    input: StepCall['input'],
    { secrets }: CompiledStep,
    signal: AbortSignal,
    aborted: Promise<never>,
  ): Promise<StepCall['input']> {
    if (!secrets) return input;
    const { run, program, stepSecrets } = this.#deps;
    return Promise.race([
      stepSecrets.fill({ run, workflow: program.workflow, signal }, input, secrets),
      aborted,
    ]);
  }

  /** Starts the timeout when the work begins, so that time in a queue does not count. */
  #begin({ step, attempt }: Attempt, one: InFlight): void {
    const { program, clock, dispatch } = this.#deps;
    const compiled = program.stepAt(step);
    one.stopTimeout = clock.after(compiled.timeoutMs, () => {
      one.controller.abort(TIMED_OUT);
      if (isOwnStep(compiled)) dispatch({ type: 'attempt.expired', step, attempt });
    });
    if (compiled.kind.reportsBegin) dispatch({ type: 'attempt.begun', step, attempt });
  }

  /**
   * Returns a promise that rejects when the grace period after the abort is over. The engine then no longer waits for
   * work that ignores its abort signal.
   */
  #afterAbort(signal: AbortSignal): Promise<never> {
    return new Promise((_, reject) => {
      signal.addEventListener(
        'abort',
        () => {
          this.#deps.clock.after(ABORT_GRACE_MS, () => reject(signal.reason));
        },
        { once: true },
      );
    });
  }

  #callOf(attempt: Attempt, input: StepCall['input'], one: InFlight): StepCall {
    const { run, program, clock, dispatch, startChild } = this.#deps;
    const { step, stepId, failures, idempotencyKey, isAlone } = attempt;
    const { uses, timeoutMs, id } = program.stepAt(step);
    const job = stepId.slice(0, -id.length - 1);
    const parent = stepRunOf(run, attemptSpan(run.id, stepId, attempt.attempt));
    let hasBegun = false;
    return {
      run: parent,
      ...{ stepId, attempt: attempt.attempt, failures, uses, input, idempotencyKey, timeoutMs },
      signal: one.controller.signal,
      alone: isAlone,
      begun: () => {
        if (hasBegun || !program.stepAt(step).kind.reportsBegin) return;
        hasBegun = true;
        this.#begin(attempt, one);
      },
      now: clock.now(),
      log: (level, message) => dispatch({ type: 'logged', level, message, job, step: id }),
      startChild: (workflowId, childInput) =>
        startChild({ parent, stepId, failures, workflowId, input: childInput }),
    };
  }
}

import type {
  EnterStep,
  ReadySteps,
  RecalledSteps,
  SettleStep,
  StepAnswer,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes, seconds } from '../../../../kit/time/duration.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { StepPart } from '../run/run-parts.ts';
import { isFinal } from '../states.ts';
import { classOfCode, StepFailure } from '../steps/retry-policy.ts';
import type { StepCall, StepOutcome } from '../steps/step-kind.ts';
import type { KnownStep } from './code-steps.ts';
import { cancelledError, passIsOver, toAbandoned } from './pass-errors.ts';
import { recalledPage } from './recalled.ts';

/** Calls that the function of a replay makes to its run. Each rejects with CONFLICT once the replay is over. */
export interface PassCalls {
  /** Reports that the function starts; before, it waited for a process and loaded. */
  begin(): Promise<void>;
  /** Returns recorded results of earlier replays, from index `after` on. */
  recall(after: number): Promise<RecalledSteps>;
  enter(step: EnterStep): Promise<StepAnswer>;
  settle(step: SettleStep): Promise<StepAnswer>;
  watch(): Promise<ReadySteps>;
}

export interface CodePassDeps {
  run: Pick<RunRecord, 'ending'>;
  token: string;
  clock: Clock;
  /** Resolves with true once all writes so far are durable. */
  flush(): Promise<boolean>;
  /** Recorded steps in the order in which the function reached them. */
  known(): KnownStep[];
  /** Returns the requested step. Throws if it is invalid or differs from the recorded one. */
  partOf(step: EnterStep): StepPart;
  /** Whether the function should request a waiting step again. */
  isReady(part: StepPart): boolean;
  /** Whether steps of the function itself may no longer start. */
  isClosing(): boolean;
  /** Reports that the function starts. False when another boot has claimed the run. */
  begun(): Promise<boolean>;
  advance(): void;
}

/** Maximum time that the function may compute between steps; afterwards it counts as hung. */
const THINK_MS = seconds(60);
/** Time after a step's timeout until its process is ended. */
const OVERRUN_MS = seconds(2);
/** Time that a cancelled step has for its own clean-up. */
const CANCEL_GRACE_MS = seconds(5);
const WATCH_MS = seconds(20);

export type CodePass = ReturnType<typeof createCodePass>;

type Settled<T> = { resolve(value: T): void; reject(error: unknown): void };
type Flight = Settled<StepOutcome> & {
  attempt: number;
  timeoutMs: number;
  key: string;
  /** Whether the function was told to begin the step, and to abort its signal. */
  told: boolean;
  toldToStop: boolean;
};

/** One replay of a workflow's function, with its open requests and in-flight steps. */
export function createCodePass({ run, token, clock, ...deps }: CodePassDeps) {
  const controller = new AbortController();
  const asked = new Map<StepPart, Settled<StepAnswer>>();
  const flying = new Map<StepPart, Flight>();
  const met = new Set<StepPart>();
  /** Steps answered with `wait` and with nothing since. */
  const owed = new Set<StepPart>();
  let watcher: Settled<ReadySteps> | null = null;
  let stopWatch = (): void => {};
  let stopThinking = (): void => {};
  let isOpen = true;
  let hasBegun = false;
  let settledSteps = 0;

  function ask(part: StepPart): Promise<StepAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<StepAnswer>();
    asked.set(part, { resolve, reject });
    met.add(part);
    return promise;
  }

  /** Runs a step inside the function: answers `run`, and resolves when the function settles the step. */
  function perform(part: StepPart): (call: StepCall) => Promise<StepOutcome> {
    return ({ run: { id: runId }, stepId, attempt, timeoutMs, idempotencyKey, signal }) => {
      // The replay ended before the start of the step was stored; the next replay requests the step again.
      if (!isOpen) return Promise.resolve({ wait: { for: 'retry' }, until: clock.now() });
      const { promise, resolve, reject } = Promise.withResolvers<StepOutcome>();
      const key = idempotencyKey ?? `${runId}/${stepId}`;
      flying.set(part, { attempt, timeoutMs, key, told: false, toldToStop: false, resolve, reject });
      signal.addEventListener('abort', () => {
        clock.after(part.stopped ? CANCEL_GRACE_MS : OVERRUN_MS, () => endOverrun(part));
        answer();
      });
      answer();
      return promise;
    };
  }

  function endOverrun(part: StepPart): void {
    if (!isOpen || !flying.has(part)) return;
    // Other branches still clean up in the same process. Their clean-up has its own limit.
    if (part.stopped && [...flying.keys()].some(({ stopped }) => !stopped)) {
      clock.after(OVERRUN_MS, () => endOverrun(part));
      return;
    }
    const message = `The step "${part.step.id}" did not end when ${part.stopped ? 'it was cancelled' : 'its time was up'}, and its process was ended with all that ran in it.`;
    controller.abort(new PlatformError('EXECUTION_TIMEOUT', message));
  }

  /** Answers all requests whose outcome is known. */
  function answer(): void {
    for (const [part, waiting] of asked) {
      const found = answerFor(part);
      if (!found) continue;
      asked.delete(part);
      if (found.state === 'wait') owed.add(part);
      else owed.delete(part);
      // Answers wait for the flush, because a crash could undo unflushed results.
      deps.flush().then((durable) => {
        if (durable && isOpen) waiting.resolve(found);
        else waiting.reject(passIsOver());
      }, waiting.reject);
    }
    const ready = watcher ? [...owed].filter(deps.isReady) : [];
    const stop = watcher ? [...flying].filter(isToStop) : [];
    for (const [, flight] of stop) flight.toldToStop = true;
    if (ready.length + stop.length > 0)
      endWatch(
        ready.map(({ step }) => step.id),
        stop.map(([{ step }]) => step.id),
      );
    mindThinking();
  }

  function answerFor(part: StepPart): StepAnswer | undefined {
    const { record, step, output, error } = part;
    const ended = { order: record.endOrder!, at: record.finishedAt! };
    if (record.status === 'succeeded') return { state: 'done', output, ...ended };
    if (isFinal(record.status)) {
      const told = error ?? cancelledError(run.ending ?? 'cancelled');
      return { state: 'failed', status: record.status, error: told, ...ended };
    }
    if (!isOwnStep(step) || record.status === 'waiting') return { state: 'wait' };
    const flight = flying.get(part);
    if (flight && !flight.told) {
      flight.told = true;
      const { attempt, timeoutMs, key } = flight;
      return { state: 'run', attempt, timeoutMs, idempotencyKey: key };
    }
    return record.status !== 'running' && deps.isClosing() ? { state: 'wait' } : undefined;
  }

  function endWatch(ready: string[] = [], stop: string[] = []): void {
    stopWatch();
    watcher?.resolve({ ready, stop });
    watcher = null;
  }

  /** Aborts a function without open requests or in-flight steps, because it only occupies a process. */
  function mindThinking(): void {
    stopThinking();
    if (!isOpen || !hasBegun || asked.size + flying.size > 0) return;
    stopThinking = clock.after(THINK_MS, () =>
      controller.abort(
        new PlatformError(
          'EXECUTION_TIMEOUT',
          `The workflow's function did nothing for ${THINK_MS / 1000} s between its steps. What takes time belongs into a step.`,
        ),
      ),
    );
  }
  const calls: PassCalls = {
    async begin() {
      hasBegun = true;
      mindThinking();
      // The limit of the clean-up counts from this point.
      if (run.ending !== null) deps.advance();
      if (!(await deps.begun()) || !isOpen) throw passIsOver();
    },
    async recall(after) {
      if (!isOpen) throw passIsOver();
      const { told, next } = recalledPage(deps.known(), after, answerFor);
      for (const { part, step } of told) {
        met.add(part);
        if (step.answer.state === 'wait') owed.add(part);
      }
      if (!(await deps.flush()) || !isOpen) throw passIsOver();
      return { steps: told.map(({ step }) => step), next };
    },
    async enter(step) {
      if (!isOpen) throw passIsOver();
      const part = deps.partOf(step);
      if (isOwnStep(part.step)) part.perform = perform(part);
      const promise = ask(part);
      // Finished steps and steps that wait outside the function need no advance; a replay requests thousands of them.
      const { status } = part.record;
      if (isFinal(status) || (status === 'waiting' && !isOwnStep(part.step))) answer();
      else deps.advance();
      return promise;
    },
    async settle({ id, attempt, outcome }) {
      const [part, flight] = [...flying].find(([{ step }]) => step.id === id) ?? [];
      if (!isOpen || !part || flight?.attempt !== attempt) throw passIsOver();
      flying.delete(part);
      settledSteps++;
      const promise = ask(part);
      if ('output' in outcome) flight.resolve({ output: outcome.output as JsonValue });
      else {
        const { error, errorClass = classOfCode(error.code), retryAfterMs = null } = outcome;
        flight.reject(new StepFailure(errorClass, error, retryAfterMs));
      }
      return promise;
    },
    watch() {
      if (!isOpen) throw passIsOver();
      endWatch();
      const { promise, resolve, reject } = Promise.withResolvers<ReadySteps>();
      watcher = { resolve, reject };
      stopWatch = clock.after(WATCH_MS, () => endWatch());
      answer();
      return promise;
    },
  };

  return {
    token,
    calls,
    // The inferred type cannot be named in the declarations that the build emits.
    signal: controller.signal as AbortSignal,
    /** Start time on the monotonic clock, in ms. */
    startedAt: clock.monotonic(),
    met: met as ReadonlySet<StepPart>,
    owed: owed as ReadonlySet<StepPart>,
    isAsked: (part: StepPart) => asked.has(part),
    /** Whether the process runs the function. */
    get hasBegun() {
      return hasBegun;
    },
    /** Number of steps that settled in this replay. */
    get settledSteps() {
      return settledSteps;
    },
    /** Number of in-flight steps. */
    get flights() {
      return flying.size;
    },
    answer,
    abort: (reason: unknown) => controller.abort(reason),
    /** Ends the replay: rejects open requests and fails in-flight steps, which it returns. */
    close(why: StepFailure | null): StepPart[] {
      isOpen = false;
      stopThinking();
      stopWatch();
      const over = passIsOver();
      for (const waiting of asked.values()) waiting.reject(over);
      watcher?.reject(over);
      const inAir = [...flying];
      for (const [, flight] of inAir) flight.reject(why ?? toAbandoned());
      asked.clear();
      flying.clear();
      return inAir.map(([part]) => part);
    },
  };
}

/** A recycled replay leaves each step its full hour. */
export const LONGEST_STEP_MS = minutes(60);

const isToStop = ([{ stopped }, { toldToStop }]: [StepPart, Flight]): boolean =>
  stopped !== null && !toldToStop;

import type {
  EnterStep,
  ReadySteps,
  RecalledSteps,
  SettleStep,
  StepAnswer,
} from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { minutes, seconds } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { StepPart } from '../run/run-parts.ts';
import { isFinal } from '../states.ts';
import { classOfCode, StepFailure } from '../steps/retry-policy.ts';
import type { StepCall, StepOutcome } from '../steps/step-kind.ts';
import type { KnownStep } from './code-steps.ts';
import { cancelledError, passIsOver, toAbandoned } from './pass-errors.ts';
import { recalledPage } from './recalled.ts';

/** What the function of a pass may ask of the run; everything rejects with CONFLICT once the pass is over. */
export interface PassCalls {
  /** The function is to run: it had to wait for a process, and load. */
  begin(): Promise<void>;
  /** What earlier passes came to, from the place `after` on. */
  recall(after: number): Promise<RecalledSteps>;
  enter(step: EnterStep): Promise<StepAnswer>;
  settle(step: SettleStep): Promise<StepAnswer>;
  watch(): Promise<ReadySteps>;
}

export interface CodePassDeps {
  run: Pick<RunRecord, 'ending'>;
  token: string;
  clock: Clock;
  /** True once everything so far is durable. */
  flush(): Promise<boolean>;
  /** The steps that the function came to, in their order. */
  known(): KnownStep[];
  /** The step that is asked for. Throws what keeps it from being one. */
  partOf(step: EnterStep): StepPart;
  /** Whether a step that waits is to be asked for again. */
  isReady(part: StepPart): boolean;
  /** Nothing of the run's own code is started any more. */
  isClosing(): boolean;
  /** The function is about to begin. False when another boot holds the run by now. */
  begun(): Promise<boolean>;
  advance(): void;
}

/** The function may compute so long between its steps; then it hangs. */
const THINK_MS = seconds(60);
/** A step that does not come back so long after its time was up takes its process along. */
const OVERRUN_MS = seconds(2);
/** A step that is cancelled may tidy up what it has begun. */
const CANCEL_GRACE_MS = seconds(5);
const WATCH_MS = seconds(20);

export type CodePass = ReturnType<typeof createCodePass>;

type Settled<T> = { resolve(value: T): void; reject(error: unknown): void };
type Flight = Settled<StepOutcome> & {
  attempt: number;
  timeoutMs: number;
  key: string;
  /** That it may begin; that its signal is to abort. */
  told: boolean;
  toldToStop: boolean;
};

/** One pass through the function of a workflow: what it asked for, and what of it is in the air. */
export function createCodePass({ run, token, clock, ...deps }: CodePassDeps) {
  const controller = new AbortController();
  const asked = new Map<StepPart, Settled<StepAnswer>>();
  const flying = new Map<StepPart, Flight>();
  const met = new Set<StepPart>();
  /** Told to wait, and not told more. */
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

  /** Does the work of one of the function's own steps: it is told to begin, and says how it ended. */
  function perform(part: StepPart): (call: StepCall) => Promise<StepOutcome> {
    return ({ run: { id: runId }, stepId, attempt, timeoutMs, idempotencyKey, signal }) => {
      // Its pass ended while its start was being written: it has not begun, and the next pass comes to it.
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
    // Its process holds the clean-up of other branches: that has a limit of its own.
    if (part.stopped && [...flying.keys()].some(({ stopped }) => !stopped)) {
      clock.after(OVERRUN_MS, () => endOverrun(part));
      return;
    }
    const message = `The step "${part.step.id}" did not end when ${part.stopped ? 'it was cancelled' : 'its time was up'}, and its process was ended with all that ran in it.`;
    controller.abort(new PlatformError('EXECUTION_TIMEOUT', message));
  }

  /** Answers what can be answered by now. */
  function answer(): void {
    for (const [part, waiting] of asked) {
      const found = answerFor(part);
      if (!found) continue;
      asked.delete(part);
      if (found.state === 'wait') owed.add(part);
      else owed.delete(part);
      // Nothing is told that a crash could take back.
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

  /** Code that neither asks nor works holds a process for nothing. */
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
      // The limit of its clean-up counts from now on.
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
      // What has ended, or waits by itself, changes nothing: a pass meets thousands of these before it comes to what is new.
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
    // The inferred type has a name that no declaration can write, and the build emits declarations.
    signal: controller.signal as AbortSignal,
    /** On the monotonic clock. */
    startedAt: clock.monotonic(),
    met: met as ReadonlySet<StepPart>,
    owed: owed as ReadonlySet<StepPart>,
    isAsked: (part: StepPart) => asked.has(part),
    /** Its process runs the function. */
    get hasBegun() {
      return hasBegun;
    },
    /** Steps of it that ended. */
    get settledSteps() {
      return settledSteps;
    },
    /** Steps whose function it runs now. */
    get flights() {
      return flying.size;
    },
    answer,
    abort: (reason: unknown) => controller.abort(reason),
    /** Ends it: what was asked is answered no more, and what is in the air failed. Returns what was in the air. */
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

/** A recycled pass leaves any step its full hour. */
export const LONGEST_STEP_MS = minutes(60);

const isToStop = ([{ stopped }, { toldToStop }]: [StepPart, Flight]): boolean =>
  stopped !== null && !toldToStop;

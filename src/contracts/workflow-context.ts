import type { z } from 'zod';
import type { PluginContextV3, StandardSchema } from './plugin-context.ts';
import type { CodeStepOptions } from './workflow-code.ts';
import type { WorkflowHostContext } from './workflow-records.ts';

/**
 * How a step is run. `retry` as in definitions (without it a failure is final): on a step it is consent to repeat that
 * step; as a default it repeats only steps that say `idempotent` or have a key. `timeoutMs` of each attempt, 5 minutes
 * unless told, an hour at most. After an interruption (a crash or restart of the service) `ctx.step` runs again, under the same
 * `idempotencyKey`; with `once` an operator decides. `ctx.invoke` runs again when it is idempotent or has a key.
 */
export type StepOptions = z.input<typeof CodeStepOptions>;

/** What a step's function is given. */
export interface StepInfo {
  /** Within the job, as `svc workflows show` names it. */
  readonly id: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** The same for each attempt of the step: for whoever receives the effect, to have it once. */
  readonly idempotencyKey: string;
  /** Aborts when the step's time is up or the run is cancelled. */
  readonly signal: AbortSignal;
}

/** A time to wait for: milliseconds from now, or a moment. */
export type SleepUntil = number | Date | string;

/** A step fails the function by rejecting with this; a function may catch it and go on. */
export interface WorkflowStepError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly step: string;
  readonly status: 'failed' | 'timed_out';
}

/** Of functions without a result; it takes in `undefined`. */
type Nothing = ReturnType<() => void>;

export interface ChildOptions extends Pick<StepOptions, 'retry'> {
  name?: string;
}

/** What a step hands on is what JSON keeps of it: dates are texts, also before a crash. */
export type Kept<Value> = Value extends string | number | boolean | null
  ? Value
  : Value extends Nothing
    ? null
    : Value extends { toJSON(): infer Json }
      ? Json
      : Value extends ReadonlyArray<infer Item>
        ? Array<Kept<Item>>
        : Value extends object
          ? { [Key in keyof Value]: Kept<Value[Key]> }
          : Value;

/** Schemas of payloads, by the name of the signal. */
export type SignalSchemas = Record<string, StandardSchema>;
type PayloadOf<Schema> = Schema extends StandardSchema<infer Payload> ? Payload : unknown;

type Branch = Promise<unknown> | (() => Promise<unknown>);
type BranchResult<One> = One extends () => Promise<infer Result>
  ? Result
  : One extends Promise<infer Result>
    ? Result
    : never;

/**
 * What a workflow's function receives. The function runs from its beginning each time the run is taken up again, and
 * finished steps hand on what they had found: whatever has an effect, or differs from time to time, belongs into a step.
 * A step begins when it is awaited. Side by side steps run within `all` alone.
 * @spec docs/workflows.md "Workflows in code"
 */
export interface WorkflowContext<Signals extends SignalSchemas = Record<never, never>>
  extends Omit<PluginContextV3<WorkflowHostContext>, 'invoke'> {
  /** Does something once. What it returns must be JSON. A name that comes again gets a number: `charge`, `charge:2`. */
  step<Result>(
    name: string,
    run: (step: StepInfo) => Result | Promise<Result>,
    options?: StepOptions,
  ): Promise<Kept<Result>>;
  /** Waits without a process. */
  sleep(until: SleepUntil): Promise<void>;
  sleep(name: string, until: SleepUntil): Promise<void>;
  /** Waits for `svc workflows signal`; one that came before counts. Rejects when it does not come in time. */
  waitForSignal<Name extends keyof Signals & string>(
    name: Name,
    options?: { timeoutMs?: number },
  ): Promise<{ payload: PayloadOf<Signals[Name]>; receivedAt: number }>;
  waitForSignal<Payload = unknown>(
    name: string,
    options?: { timeoutMs?: number },
  ): Promise<{ payload: Payload; receivedAt: number }>;
  /** Waits for `svc workflows approve`. Rejects when it is refused, or does not come in time. */
  approval(
    name: string,
    options?: { message?: string; timeoutMs?: number },
  ): Promise<{ approved: true; by: string; comment: string | null }>;
  /** Runs a command as a step; of another plugin where `permissions.invoke` lists it. */
  invoke<Result = unknown>(
    command: string,
    input?: Record<string, unknown>,
    options?: StepOptions & { name?: string },
  ): Promise<Result>;
  /** Runs another workflow as a child and hands on its output. With `retry` another child follows one that failed. */
  runWorkflow<Output = unknown>(id: string, input?: unknown, options?: ChildOptions): Promise<Output>;
  /** Runs steps, or functions that hold steps, side by side; waits for all of them, then rejects with the first failure. */
  all<const Branches extends readonly Branch[]>(
    branches: Branches,
  ): Promise<{ -readonly [Index in keyof Branches]: BranchResult<Branches[Index]> }>;
  /**
   * Runs steps as a clean-up, also while nothing is being ended: a run that is cancelled meanwhile tells its function at the
   * first step after them.
   */
  nonCancellable<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Epoch milliseconds: when the latest step here ended, the same in each pass. */
  now(): number;
  /** In [0, 1), the same in each pass. No secret: whoever knows the run can compute it. */
  random(): number;
  /** The same in each pass. */
  uuid(): string;
}

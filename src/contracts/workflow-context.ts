import type { z } from 'zod';
import type { PluginContextV3, StandardSchema } from './plugin-context.ts';
import type { CodeStepOptions } from './workflow-code.ts';
import type { WorkflowHostContext } from './workflow-records.ts';

/**
 * Options of a step. An explicit `retry` permits repeating the step; an inherited `retry` does so only if the step is
 * `idempotent` or has a key. `timeoutMs` limits each attempt: default 5 minutes, at most an hour.
 */
export type StepOptions = z.input<typeof CodeStepOptions>;

/** Argument that a step's function receives. */
export interface StepInfo {
  /** Id of the step within the job, as `svc workflows show` prints it. */
  readonly id: string;
  /** Number of the attempt, starting at 1. */
  readonly attempt: number;
  /** A key that is equal for all attempts of the step. Receivers use it to deduplicate the effect. */
  readonly idempotencyKey: string;
  /** Aborts when the step times out or the run is cancelled. */
  readonly signal: AbortSignal;
}

/** End of a wait: a duration in ms, or a time. */
export type SleepUntil = number | Date | string;

/** Error with which a failed step rejects. The function may catch the error and continue. */
export interface WorkflowStepError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly step: string;
  readonly status: 'failed' | 'timed_out';
}

/** Return type of functions without a result. It includes `undefined`. */
type Void = ReturnType<() => void>;

export interface ChildOptions extends Pick<StepOptions, 'retry'> {
  name?: string;
}

/** A step's result after a JSON round trip: dates are strings, even in the first execution. */
export type Jsonify<Value> = Value extends string | number | boolean | null
  ? Value
  : Value extends Void
    ? null
    : Value extends { toJSON(): infer Json }
      ? Json
      : Value extends ReadonlyArray<infer Item>
        ? Array<Jsonify<Item>>
        : Value extends object
          ? { [Key in keyof Value]: Jsonify<Value[Key]> }
          : Value;

/** Schemas of signal payloads by signal name. */
export type SignalSchemas = Record<string, StandardSchema>;
type PayloadOf<Schema> = Schema extends StandardSchema<infer Payload> ? Payload : unknown;

type Branch = Promise<unknown> | (() => Promise<unknown>);
type BranchResult<One> = One extends () => Promise<infer Result>
  ? Result
  : One extends Promise<infer Result>
    ? Result
    : never;

/**
 * Context of a workflow function. The function is replayed from its start whenever the run resumes; finished steps
 * return their stored results. Put effects and non-deterministic code into steps. A step starts when it is awaited;
 * steps run concurrently only inside `all`. @spec docs/workflows.md "Workflows in code"
 */
export interface WorkflowContext<Signals extends SignalSchemas = Record<never, never>>
  extends Omit<PluginContextV3<WorkflowHostContext>, 'invoke'> {
  /** Runs a function once and stores its result as JSON. Repeated names are numbered: `charge`, `charge:2`. */
  step<Result>(
    name: string,
    run: (step: StepInfo) => Result | Promise<Result>,
    options?: StepOptions,
  ): Promise<Jsonify<Result>>;
  /** Waits without occupying a process. */
  sleep(until: SleepUntil): Promise<void>;
  sleep(name: string, until: SleepUntil): Promise<void>;
  /** Waits for a signal, which may have arrived earlier. Rejects on timeout. */
  waitForSignal<Name extends keyof Signals & string>(
    name: Name,
    options?: { timeoutMs?: number },
  ): Promise<{ payload: PayloadOf<Signals[Name]>; receivedAt: number }>;
  waitForSignal<Payload = unknown>(
    name: string,
    options?: { timeoutMs?: number },
  ): Promise<{ payload: Payload; receivedAt: number }>;
  /** Waits for `svc workflows approve`. Rejects if refused, and on timeout. */
  approval(
    name: string,
    options?: { message?: string; timeoutMs?: number },
  ): Promise<{ approved: true; by: string; comment: string | null }>;
  /** Runs a command as a step. Commands of other plugins must be listed in `permissions.invoke`. */
  invoke<Result = unknown>(
    command: string,
    input?: Record<string, unknown>,
    options?: StepOptions & { name?: string },
  ): Promise<Result>;
  /**
   * Runs another workflow as a child and returns its output. With `retry`, a failed child is replaced by a new child.
   */
  runWorkflow<Output = unknown>(id: string, input?: unknown, options?: ChildOptions): Promise<Output>;
  /** Runs steps or functions with steps concurrently. Waits for all of them, then rejects with the first failure. */
  all<const Branches extends readonly Branch[]>(
    branches: Branches,
  ): Promise<{ -readonly [Index in keyof Branches]: BranchResult<Branches[Index]> }>;
  /** Runs steps as a clean-up. If the run is cancelled during the clean-up, the first step after it rejects. */
  nonCancellable<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Returns the time at which the latest step of this branch ended, in epoch ms. The value is the same in each replay.
   */
  now(): number;
  /**
   * Returns a number in [0, 1) that is the same in each replay. The number is predictable and must not be used for
   * secrets.
   */
  random(): number;
  /** Returns a UUID that is the same in each replay. */
  uuid(): string;
}

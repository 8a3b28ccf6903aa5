import type { z } from 'zod';
import type { PluginContextV3, StandardSchema } from './plugin-context.ts';
import type { CodeStepOptions } from './workflow-code.ts';
import type { WorkflowHostContext } from './workflow-records.ts';

/**
 * Options of a step. A step with its own `retry` can be repeated after an interruption. With an inherited `retry`, the
 * step must also set `idempotent` or `idempotencyKey`. `timeoutMs` limits each attempt (default 5 minutes, maximum 1
 * hour).
 */
export type StepOptions = z.input<typeof CodeStepOptions>;

/** Argument that a step's function receives. */
export interface StepInfo {
  /** Id of the step within the job, as `svc workflows show` prints it. */
  readonly id: string;
  /** Number of the attempt, starting at 1. */
  readonly attempt: number;
  /** Key that is the same for all attempts of the step. The key lets receivers deduplicate the effect. */
  readonly idempotencyKey: string;
  /** Aborts when the step times out or the run is cancelled. */
  readonly signal: AbortSignal;
}

/** End of a wait, given as a duration in ms or as a point in time. */
export type SleepUntil = number | Date | string;

/** Error with which a failed step rejects. The workflow function can catch the error and continue. */
export interface WorkflowStepError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly step: string;
  readonly status: 'failed' | 'timed_out';
}

/** Return type of functions without a result. The type includes `undefined`. */
type Void = ReturnType<() => void>;

export interface ChildOptions extends Pick<StepOptions, 'retry'> {
  name?: string;
}

export interface SignalOptions {
  timeoutMs?: number;
  /** Whether agents may send the signal while the step waits. By default only persons and plugins may. */
  agents?: boolean;
}

export interface ApprovalOptions {
  message?: string;
  timeoutMs?: number;
  /** JSON Schema (`type: object`) of the data that the person enters. */
  form?: Record<string, unknown>;
  /** Roles of which an approver needs one, or a higher one. By default any caller that may change runs. */
  approvers?: { roles: Array<'viewer' | 'editor' | 'admin'> };
  /** Whether agents may answer. By default only persons may. */
  agents?: boolean;
}

/** Type of a step's result after a JSON round trip. Dates become strings, even in the first execution. */
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
 * Context of a workflow function. When a run continues after a wait, the function is replayed from its start, and
 * finished steps return their stored results. Effects and non-deterministic code must therefore be inside steps. Steps
 * run concurrently only inside `all`. @spec docs/workflows.md "Workflows in code"
 */
export interface WorkflowContext<Signals extends SignalSchemas = Record<never, never>>
  extends Omit<PluginContextV3<WorkflowHostContext>, 'invoke'> {
  /**
   * Runs a function and stores its result as JSON. Replays return the stored result. Repeated step names are numbered,
   * as in `charge` and `charge:2`.
   */
  step<Result>(
    name: string,
    run: (step: StepInfo) => Result | Promise<Result>,
    options?: StepOptions,
  ): Promise<Jsonify<Result>>;
  /** Waits without occupying a process. */
  sleep(until: SleepUntil): Promise<void>;
  sleep(name: string, until: SleepUntil): Promise<void>;
  /** Waits for a signal. Resolves immediately if the signal has already arrived. Rejects on timeout. */
  waitForSignal<Name extends keyof Signals & string>(
    name: Name,
    options?: SignalOptions,
  ): Promise<{ payload: PayloadOf<Signals[Name]>; receivedAt: number }>;
  waitForSignal<Payload = unknown>(
    name: string,
    options?: SignalOptions,
  ): Promise<{ payload: Payload; receivedAt: number }>;
  /**
   * Waits for an approval, for example by `svc workflows approve`. Rejects if the approval is refused or times out. With
   * a form, `data` is the checked data of the person.
   */
  approval<Data = unknown>(
    name: string,
    options: ApprovalOptions & { form: Record<string, unknown> },
  ): Promise<{ approved: true; by: string; comment: string | null; data: Data }>;
  approval(
    name: string,
    options?: ApprovalOptions,
  ): Promise<{ approved: true; by: string; comment: string | null }>;
  /** Runs a command as a step. Commands of other plugins must be listed in `permissions.invoke`. */
  invoke<Result = unknown>(
    command: string,
    input?: Record<string, unknown>,
    options?: StepOptions & { name?: string },
  ): Promise<Result>;
  /**
   * Runs another workflow as a child run and returns the child's output. With `retry`, a failed child run is replaced
   * by a new child run.
   */
  runWorkflow<Output = unknown>(id: string, input?: unknown, options?: ChildOptions): Promise<Output>;
  /**
   * Runs branches concurrently and waits for all branches. Rejects with the first failure. A branch is a step or a
   * function that contains steps.
   */
  all<const Branches extends readonly Branch[]>(
    branches: Branches,
  ): Promise<{ -readonly [Index in keyof Branches]: BranchResult<Branches[Index]> }>;
  /**
   * Runs clean-up steps that a cancellation does not interrupt. If the run is cancelled during the clean-up, the first
   * step after the clean-up rejects.
   */
  nonCancellable<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Returns the end time of the latest step in this branch, in epoch ms, or the branch's start time before its first
   * step. The value is the same in each replay.
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

import type { StepWait } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { PluginAway } from './plugin-away.ts';

/** Data of the run that a step can use. */
export interface StepRun {
  id: string;
  tenantId: string;
  workflowId: string;
  hostId: string;
  requestId: string;
  traceId: string;
  deliveryId: string | null;
  /** Span id of this attempt. */
  spanId: string;
  depth: number;
}

export interface StepCall {
  run: StepRun;
  /** Public name of the step, in the form `<job>.<step>`. */
  stepId: string;
  /** Number of the attempt, starting at 1. */
  attempt: number;
  /** Number of failed attempts so far. Attempts that a crash interrupted do not count. */
  failures: number;
  uses: string;
  /** The `with` object of the step, with all expressions evaluated. */
  input: Record<string, JsonValue>;
  idempotencyKey: string | null;
  timeoutMs: number;
  /** Signal that aborts when the run is cancelled or the step times out. */
  signal: AbortSignal;
  /**
   * Whether the work needs a process without other calls. Set if an earlier process ended unexpectedly during this
   * step.
   */
  alone: boolean;
  /** Callback that is called when the work begins, by step kinds that set `reportsBegin`. */
  begun(): void;
  now: number;
  log(level: string, message: string): void;
  /** Starts a child run, or finds the child run from before a crash. Resolves with the run id of the child. */
  startChild(workflowId: string, input: JsonValue): Promise<string>;
}

/**
 * Delay before the start of an attempt is persisted. If the service crashes before this write, the attempt does not
 * count as in flight.
 */
export const BEGUN_FLUSH_MS = 50;

/**
 * Outcome of a step. With `byWallClock`, the wait ends when the wall clock reaches `until`. Otherwise, the wait has a
 * fixed duration, and `until` is its planned end.
 */
export type StepOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean };

/**
 * Kind of step. An `instant` step is deterministic and runs synchronously. A `wait` step returns a wait. For an
 * `effect` step, the start is durable before the work begins, unless a repeat is harmless.
 */
export interface StepKind {
  readonly name: string;
  readonly mode: 'instant' | 'wait' | 'effect';
  /** Whether a step of this kind counts towards the limit on steps in flight. */
  readonly takesSlot: boolean;
  readonly defaultTimeoutMs: number;
  /** Whether a call of this kind can be queued. If so, the timeout starts when the work calls `begun`. */
  readonly reportsBegin?: true;
  /** Whether the input can contain secrets, because the step does not store it. */
  readonly takesSecrets?: true;
  /** Returns the errors in the `with` object of a definition that can be found without evaluating expressions. */
  check(input: Record<string, JsonValue>): Array<{ path: string[]; message: string }>;
  /** Returns an error if the step cannot run now because its plugin is not loaded. Otherwise returns undefined. */
  away?(uses: string): PluginAway | undefined;
  /** Returns whether the step can safely run again after an interruption. */
  isIdempotent(uses: string, input: Record<string, JsonValue>): boolean;
  /**
   * Performs the step. Errors other than `StepFailure` are converted to a `StepFailure`. `instant` and `wait` kinds
   * return synchronously.
   */
  run(call: StepCall): StepOutcome | Promise<StepOutcome>;
}

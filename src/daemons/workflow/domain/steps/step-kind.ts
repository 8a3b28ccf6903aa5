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
  /** Span id of this attempt. */
  spanId: string;
  depth: number;
}

export interface StepCall {
  run: StepRun;
  /** Public name of the step: `<job>.<step>`. */
  stepId: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Number of failed attempts so far. Attempts interrupted by a crash do not count. */
  failures: number;
  uses: string;
  /** The step's `with` with all expressions evaluated. */
  input: Record<string, JsonValue>;
  idempotencyKey: string | null;
  timeoutMs: number;
  /** Aborts when the run is cancelled or the step times out. */
  signal: AbortSignal;
  /** Whether the work needs a process of its own, because a process was lost during this step. */
  alone: boolean;
  /** Called by kinds with `reportsBegin` when the work begins. */
  begun(): void;
  now: number;
  log(level: string, message: string): void;
  /** Starts a child run, or finds the child that the step started before. Resolves with the id of the child. */
  startChild(workflowId: string, input: JsonValue): Promise<string>;
}

/** Delay before the start of an attempt is written. A crash counts the attempt as in flight only after this write. */
export const BEGUN_FLUSH_MS = 50;

/**
 * Outcome of a step. With `byWallClock`, `until` is a date and follows clock changes; otherwise `until` is the end of a
 * duration.
 */
export type StepOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean };

/**
 * A kind of step. `instant` steps are deterministic, run in place and have no side effects. `wait` steps return a
 * wait. The start of an `effect` step is durable before it begins, unless a repeat is harmless.
 */
export interface StepKind {
  readonly name: string;
  readonly mode: 'instant' | 'wait' | 'effect';
  /** Whether a step of this kind takes a slot of the limit on steps in flight. */
  readonly takesSlot: boolean;
  readonly defaultTimeoutMs: number;
  /** Set if the work may be queued first. Its timeout then starts when `begun` is called. */
  readonly reportsBegin?: true;
  /** Returns faults in the `with` of a definition, as far as they can be found before evaluation. */
  check(input: Record<string, JsonValue>): Array<{ path: string[]; message: string }>;
  /** Returns the reason if the step cannot run now because its plugin is not loaded. */
  away?(uses: string): PluginAway | undefined;
  /** Returns whether the step may run again after an interruption in flight. */
  isIdempotent(uses: string, input: Record<string, JsonValue>): boolean;
  /**
   * Performs the step. A thrown StepFailure carries an error class; other errors are converted to a StepFailure.
   * `instant` and `wait` kinds return synchronously.
   */
  run(call: StepCall): StepOutcome | Promise<StepOutcome>;
}

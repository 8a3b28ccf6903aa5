import type { StepWait } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { PluginAway } from './plugin-away.ts';

/** What a step knows of its run. */
export interface StepRun {
  id: string;
  tenantId: string;
  workflowId: string;
  hostId: string;
  requestId: string;
  traceId: string;
  /** The span of this attempt. */
  spanId: string;
  depth: number;
}

export interface StepCall {
  run: StepRun;
  /** `<job>.<step>`. */
  stepId: string;
  /** 1 for the first. */
  attempt: number;
  /** Attempts that failed before: those that a crash interrupted do not count. */
  failures: number;
  uses: string;
  /** Its `with`, evaluated. */
  input: Record<string, JsonValue>;
  idempotencyKey: string | null;
  timeoutMs: number;
  /** Aborts when the run is cancelled or time is up. */
  signal: AbortSignal;
  /** A process was lost under the step: its work shares no process any more. */
  alone: boolean;
  /** To be called when the work begins, by a kind that `reportsBegin`. */
  begun(): void;
  now: number;
  log(level: string, message: string): void;
}

/** The beginning of longer work is durable after so long: a crash then counts it as in flight. */
export const BEGUN_FLUSH_MS = 50;

/** `byWallClock`: `until` names a date, and moves with a clock that is set; else it ends a duration. */
export type StepOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean };

/**
 * One kind of step. `instant`: computed in place, the same every time, nothing to be seen outside. `wait`: says what to
 * wait for. `effect`: does something; its start is durable before it begins, unless a second run does no harm.
 */
export interface StepKind {
  readonly name: string;
  readonly mode: 'instant' | 'wait' | 'effect';
  /** Whether it takes one of the slots for running steps. */
  readonly takesSlot: boolean;
  readonly defaultTimeoutMs: number;
  /** The work may be queued first: its time begins when `begun` is called. */
  readonly reportsBegin?: true;
  /** What is wrong with the `with` of a definition, as far as it is known before expressions are evaluated. */
  check(input: Record<string, JsonValue>): Array<{ path: string[]; message: string }>;
  /** Why it cannot run now, though it may later: its plugin is not loaded. */
  away?(uses: string): PluginAway | undefined;
  /** Whether it may be run a second time after it was interrupted in mid-air. */
  isIdempotent(uses: string, input: Record<string, JsonValue>): boolean;
  /** Throws StepFailure, or anything. `instant` and `wait` answer at once. */
  run(call: StepCall): StepOutcome | Promise<StepOutcome>;
}

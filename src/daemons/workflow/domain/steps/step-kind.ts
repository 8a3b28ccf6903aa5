import type { StepWait } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { PluginAway } from './plugin-away.ts';

/** Run data available to a step. */
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
  /** Failed attempts so far; attempts interrupted by a crash do not count. */
  failures: number;
  uses: string;
  /** Evaluated `with` of the step. */
  input: Record<string, JsonValue>;
  idempotencyKey: string | null;
  timeoutMs: number;
  /** Aborts when the run is cancelled or the step times out. */
  signal: AbortSignal;
  /** The work shares no process, because one was lost under the step. */
  alone: boolean;
  /** Called when the work begins, by kinds with `reportsBegin`. */
  begun(): void;
  now: number;
  log(level: string, message: string): void;
}

/** Delay before the start of an attempt is written; from then on, a crash counts it as in flight. */
export const BEGUN_FLUSH_MS = 50;

/** `byWallClock`: `until` is a date and follows clock changes; else it is the end of a duration. */
export type StepOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean };

/**
 * A kind of step. `instant`: deterministic, computed in place, without side effects. `wait`: returns a wait. `effect`:
 * its start is durable before it begins, unless a repeat is harmless.
 */
export interface StepKind {
  readonly name: string;
  readonly mode: 'instant' | 'wait' | 'effect';
  /** Whether a step of this kind takes a slot of the limit on running steps. */
  readonly takesSlot: boolean;
  readonly defaultTimeoutMs: number;
  /** The work may be queued first: its timeout starts when `begun` is called. */
  readonly reportsBegin?: true;
  /** Returns faults in the `with` of a definition, as far as they are known before evaluation. */
  check(input: Record<string, JsonValue>): Array<{ path: string[]; message: string }>;
  /** Returns why the step cannot run now but may later: its plugin is not loaded. */
  away?(uses: string): PluginAway | undefined;
  /** Whether the step may run again after an interruption in flight. */
  isIdempotent(uses: string, input: Record<string, JsonValue>): boolean;
  /** Throws StepFailure or any other error. `instant` and `wait` return synchronously. */
  run(call: StepCall): StepOutcome | Promise<StepOutcome>;
}

import type { EnterStep, ReplayEnd, SettleStep, StepWait } from '../../../../contracts/index.ts';
import type { InboxRecord, JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { Failure } from './failure.ts';
import type { StepKey } from './state.ts';

/**
 * Outcome of an attempt. With `byWallClock`, the wait ends when the wall clock reaches `until`, even after a clock
 * change.
 */
export type AttemptOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean }
  | { failure: Failure };

/**
 * Properties of a step that depend on the loaded plugins. Events carry these properties, so that transitions need no
 * I/O.
 */
export interface StepFacts {
  /** Whether the step can safely run again after an interruption. */
  isIdempotent: boolean;
}

/** Evaluated input of an attempt, or the failure of the evaluation. */
export type EvaluatedInput =
  | { idempotencyKey: string | null; input: Record<string, JsonValue> }
  | { failure: Failure };

/** Result or failure of a replay. An interrupted replay counts as failed. */
export type ReplayOutcome = Exclude<ReplayEnd, { end: 'broke' }> | { end: 'failed'; failure: Failure };

type StepEvent =
  | { type: 'slot.granted'; owner: StepKey | 'replay' }
  | { type: 'slot.withdrawn'; step: StepKey }
  | { type: 'step.inspected'; step: StepKey; facts: StepFacts; away: Failure | null }
  | { type: 'attempt.evaluated'; step: StepKey; attempt: number; input: EvaluatedInput; facts: StepFacts }
  | { type: 'attempt.begun'; step: StepKey; attempt: number }
  | { type: 'attempt.expired'; step: StepKey; attempt: number }
  | {
      type: 'attempt.settled';
      step: StepKey;
      attempt: number;
      outcome: AttemptOutcome;
      isExpired: boolean;
      facts: StepFacts;
    }
  | {
      type: 'children.found';
      found: Array<{ step: StepKey; runId: string; child: RunRecord | null; facts: StepFacts }>;
    }
  /** Reports that the child runs of these steps could not be looked up. */
  | { type: 'children.unknown'; steps: StepKey[] }
  | { type: 'child.cancelled'; step: StepKey; isCancelled: boolean };

/**
 * Event of a replay. Each call of the workflow function has a request number. An effect carries the reply to the call.
 */
type ReplayEvent =
  | { type: 'replay.begun'; replay: number; request: number | null }
  | { type: 'replay.recalled'; replay: number; request: number; after: number }
  | { type: 'replay.entered'; replay: number; request: number; step: EnterStep }
  | { type: 'replay.settled'; replay: number; request: number; step: SettleStep }
  | { type: 'replay.watched'; replay: number; request: number }
  | { type: 'replay.unwatched'; replay: number; request: number }
  | { type: 'replay.idle'; replay: number }
  | { type: 'replay.overrun'; replay: number; step: StepKey }
  | { type: 'replay.rested' }
  | { type: 'replay.ended'; replay: number; outcome: ReplayOutcome; isAborted: boolean };

export type RunEvent =
  | { type: 'claimed' }
  /** Advances the run once for all steps that settled together, because each advance visits every step. */
  | { type: 'advance' }
  | { type: 'news'; entry: InboxRecord | null; endedChildren: string[] }
  | { type: 'cancel' }
  | { type: 'plugins.changed' }
  | { type: 'drain' }
  | { type: 'undrain' }
  | { type: 'logged'; level: string; message: string; job: string; step?: string }
  | {
      type: 'evaluated';
      id: string;
      answer: { value: JsonValue } | { failure: Failure };
    }
  /**
   * `open` contains the unfinished children of the run. `open` is null if the store could not be read. `ended` contains
   * children that were reported as ended before the read.
   */
  | { type: 'children.open'; open: string[] | null; ended: string[] }
  | StepEvent
  | ReplayEvent;

/**
 * Clock times, random number and free capacity of an event. With these values as arguments, transitions are
 * deterministic.
 */
export interface Stamp {
  /** Wall-clock time, in ms since the epoch. */
  now: number;
  /** Time on the monotonic clock, in ms. */
  monotonic: number;
  /** Random number in [0, 1), for jitter. */
  fraction: number;
  /** Remaining budget for synchronous evaluations, in cost units of about 100 ns. */
  units: number;
  /** Number of slots that the tenant of the run can take now. */
  slots: number;
}

export type StampedEvent = RunEvent & Stamp;

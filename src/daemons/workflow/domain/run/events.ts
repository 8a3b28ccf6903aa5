import type { EnterStep, ReplayEnd, SettleStep, StepWait } from '../../../../contracts/index.ts';
import type { InboxRecord, JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { Failure } from './failure.ts';
import type { StepKey } from './state.ts';

/** Outcome of an attempt. `byWallClock` means that `until` is a date and follows clock changes. */
export type AttemptOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean }
  | { failure: Failure };

/** Properties of a step that depend on the loaded plugins. An event carries them, so that transitions need no I/O. */
export interface StepFacts {
  /** Whether the step's kind allows a repeat after an interruption. */
  isIdempotent: boolean;
}

/** Evaluated input of an attempt, or the failure of its evaluation. */
export type EvaluatedInput =
  | { idempotencyKey: string | null; input: Record<string, JsonValue> }
  | { failure: Failure };

/** Result of a replay, or its failure. A replay that was interrupted counts as a failure. */
export type ReplayOutcome = Exclude<ReplayEnd, { end: 'broke' }> | { end: 'failed'; failure: Failure };

type StepEvent =
  | { type: 'slot.granted'; owner: StepKey | 'replay' }
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
  /** Reports that the lookup of these steps' children failed. */
  | { type: 'children.unknown'; steps: StepKey[] }
  | { type: 'child.cancelled'; step: StepKey; isCancelled: boolean };

/** Event of a replay. Calls of the function carry a request number, and an effect answers each call. */
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
  /** Advances the run once for all steps that settled together, because each advance visits all steps of the run. */
  | { type: 'advance' }
  | { type: 'news'; entry: InboxRecord | null; endedChildren: string[] }
  | { type: 'cancel' }
  | { type: 'plugins.changed' }
  | { type: 'drain' }
  | { type: 'logged'; level: string; message: string; job: string; step?: string }
  | {
      type: 'evaluated';
      id: string;
      answer: { value: JsonValue } | { failure: Failure };
    }
  /**
   * Lists the unfinished children of the run, or is null if they could not be read. `ended` lists children that were
   * already known to have ended.
   */
  | { type: 'children.open'; open: string[] | null; ended: string[] }
  | StepEvent
  | ReplayEvent;

/** Times, random number and free capacity at an event, so that a transition depends on its arguments only. */
export interface Stamp {
  /** Wall-clock time, in ms since the epoch. */
  now: number;
  /** Time on the monotonic clock, in ms. */
  monotonic: number;
  /** Random number in [0, 1), for jitter. */
  fraction: number;
  /** Budget in units for synchronous evaluations. */
  units: number;
  /** Number of slots that the tenant of the run may take. */
  slots: number;
}

export type StampedEvent = RunEvent & Stamp;

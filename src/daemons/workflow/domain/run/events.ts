import type { EnterStep, ReplayEnd, SettleStep, StepWait } from '../../../../contracts/index.ts';
import type { InboxRecord, JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { Failure } from './failure.ts';
import type { StepKey } from './state.ts';

/** Outcome of an attempt. `byWallClock`: `until` is a date and follows clock changes. */
export type AttemptOutcome =
  | { output: JsonValue }
  | { wait: StepWait; until: number | null; byWallClock?: boolean }
  | { failure: Failure };

/** Facts about a step that depend on the loaded plugins, so that they come with the event. */
export interface StepFacts {
  /** Whether its kind may repeat it after an interruption. */
  isIdempotent: boolean;
}

/** Evaluated input of an attempt. */
export type EvaluatedInput =
  | { idempotencyKey: string | null; input: Record<string, JsonValue> }
  | { failure: Failure };

/** Result of a replay that did not break off, or its failure. */
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
  /** The lookup failed. */
  | { type: 'children.unknown'; steps: StepKey[] }
  | { type: 'child.cancelled'; step: StepKey; isCancelled: boolean };

/** Calls of the function are numbered; each is answered by an effect. */
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

/** A change that concerns a run. */
export type RunEvent =
  | { type: 'claimed' }
  /** Moves the run forward, once for all steps that settled together: each advance visits all steps of the run. */
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
  /** Unfinished children of the run; null when they could not be read. `ended`: those known to have ended before. */
  | { type: 'children.open'; open: string[] | null; ended: string[] }
  | StepEvent
  | ReplayEvent;

/** Time, chance and free capacity at an event, so that a transition depends on its arguments only. */
export interface Stamp {
  /** Wall clock, epoch ms. */
  now: number;
  /** Monotonic clock, ms. */
  monotonic: number;
  /** In [0, 1), for jitter. */
  fraction: number;
  /** Budget for evaluations in place. */
  units: number;
  /** Slots that the tenant of the run may take. */
  slots: number;
}

export type StampedEvent = RunEvent & Stamp;

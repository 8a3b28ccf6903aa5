import type { RunError } from '../../../../contracts/index.ts';
import type { JsonValue, RunRecord, StepRecord } from '../../../../store/ports/index.ts';
import { isFinal } from '../states.ts';
import { type KnownSteps, knownSteps } from './known-steps.ts';

/**
 * Outcome of a workflow function, which is also the outcome of its job. `isCancel` means that the function rethrew the
 * cancellation error.
 */
export type Verdict = { output: JsonValue } | { error: RunError; isCancel?: true | undefined };

/** In-flight step whose work is inline code of the workflow function. The replay process performs such a step. */
export interface OwnFlight {
  attempt: number;
  timeoutMs: number;
  idempotencyKey: string;
  /** Whether the reply that lets the function begin the step was sent. */
  isBeginAnswered: boolean;
  /** Whether the abort of the step was sent to the function. */
  isAbortAnswered: boolean;
}

/** One replay of a workflow's function, with its open requests and in-flight steps. Steps are identified by index. */
export interface ReplayState {
  id: number;
  /** Request numbers by step index, for requests without a reply. */
  openRequests: Map<number, number>;
  inFlight: Map<number, OwnFlight>;
  reachedSteps: Set<number>;
  /** Indexes of the steps for which the latest reply to the function was `wait`. */
  awaitedSteps: Set<number>;
  /** Number of the pending `watch` request, or null if no `watch` request is pending. */
  watcher: number | null;
  /** Whether the replay process has started the workflow function. */
  hasBegun: boolean;
  isAborted: boolean;
  /** Whether the idle timer is set. The timer ends a function that has no open request and no step in flight. */
  isIdle: boolean;
  settledSteps: number;
  /** Start time on the monotonic clock, in ms. */
  startedAt: number;
}

/**
 * State of the function of a workflow written in code. Between replays, `replay` is null, and only the results of
 * recorded steps are kept.
 */
export interface CodeState {
  known: KnownSteps;
  replay: ReplayState | null;
  replays: number;
  slot: 'none' | 'queued' | 'held';
  verdict: Verdict | null;
  /** Whether a replay is due. Null until the job is first advanced. */
  due: boolean | null;
  /** Indexes of the steps whose outcomes the function awaits. */
  awaitedSteps: Set<number>;
  /** Number of consecutive failed replays. */
  failures: number;
  /** Number of replays whose process ended unexpectedly since the run was claimed. */
  losses: number;
  /** Whether the backoff after a failed replay is in progress. */
  isResting: boolean;
  /** Time until which replays wait because the plugin was unavailable, or null. A plugin reload resets the value. */
  away: { wakeAt: number } | null;
  /**
   * Whether a waiting job needs a replay. Set if the plugin was unavailable, or if a crash might have lost a due
   * replay.
   */
  mustReplay: boolean;
  /** Whether the plugin was unavailable at the latest replay. */
  wasUnavailable: boolean;
  /** Whether the function and its clean-up are stopped permanently. */
  isStopped: boolean;
  knowsEnding: boolean;
  /** Whether any step was already cancelled when the function ended. Null until the function ends. */
  learnedOfEnd: boolean | null;
}

export function newCodeState({ reason, status }: RunRecord, steps: readonly StepRecord[]): CodeState {
  return {
    known: knownSteps(steps),
    replay: null,
    replays: 0,
    slot: 'none',
    verdict: null,
    due: null,
    awaitedSteps: new Set(steps.filter((step) => !isFinal(step.status)).map(({ index }) => index)),
    failures: 0,
    losses: 0,
    isResting: false,
    away: null,
    mustReplay: reason === 'plugin' || status === 'queued',
    wasUnavailable: reason === 'plugin',
    isStopped: false,
    knowsEnding: false,
    learnedOfEnd: null,
  };
}

import type { RunError } from '../../../../contracts/index.ts';
import type { JsonValue, RunRecord, StepRecord } from '../../../../store/ports/index.ts';
import { isFinal } from '../states.ts';
import { type KnownSteps, knownSteps } from './known-steps.ts';

/** Outcome of a workflow's function and of its job. `isCancel` means that the function rethrew its cancellation. */
export type Verdict = { output: JsonValue } | { error: RunError; isCancel?: true | undefined };

/** An in-flight step that the process of the replay performs, because its work is part of the workflow's function. */
export interface OwnFlight {
  attempt: number;
  timeoutMs: number;
  idempotencyKey: string;
  /** Whether the reply with which the function begins the step was sent. */
  isBeginAnswered: boolean;
  /** Whether the abort of the step was sent to the function. */
  isAbortAnswered: boolean;
}

/** One replay of a workflow's function, with its open requests and in-flight steps. Steps are identified by index. */
export interface ReplayState {
  id: number;
  /** Request number by step index, for requests that are not answered yet. */
  openRequests: Map<number, number>;
  inFlight: Map<number, OwnFlight>;
  reachedSteps: Set<number>;
  /** Steps for which the function waits, according to the latest reply to this replay. */
  awaitedSteps: Set<number>;
  /** Number of the open `watch` request; null if there is none. */
  watcher: number | null;
  /** Whether the process has started the function. */
  hasBegun: boolean;
  isAborted: boolean;
  /** Whether the timer that ends a function without open requests is set. */
  isIdle: boolean;
  settledSteps: number;
  /** Start time on the monotonic clock, in ms. */
  startedAt: number;
}

/**
 * State of the function of a workflow in code. Between replays the function does not run, and only its recorded steps
 * exist.
 */
export interface CodeState {
  known: KnownSteps;
  replay: ReplayState | null;
  replays: number;
  slot: 'none' | 'queued' | 'held';
  verdict: Verdict | null;
  /** Whether a replay is due; null until the job was first advanced. */
  due: boolean | null;
  /** Steps whose outcome the function waits for. */
  awaitedSteps: Set<number>;
  /** Number of consecutive failed replays. */
  failures: number;
  /** Number of processes lost during replays since the run was claimed. */
  losses: number;
  /** Whether the backoff after a failed replay is in progress. */
  isResting: boolean;
  /**
   * Set when the plugin was unavailable at the start of a replay. Cleared by a plugin reload, or when `wakeAt` is
   * reached.
   */
  away: { wakeAt: number } | null;
  /** Forces a replay of a waiting job. The plugin was unavailable, or a crash may have lost a replay that was due. */
  mustReplay: boolean;
  /** Whether the plugin was unavailable at the latest replay. */
  wasUnavailable: boolean;
  /** Whether the function and its clean-up are stopped for good. */
  isStopped: boolean;
  knowsEnding: boolean;
  /** Whether a cancelled step has told the function that its run is ending; null until the job ends. */
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

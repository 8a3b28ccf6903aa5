import type { RunError } from '../../../../contracts/index.ts';
import type { JsonValue, RunRecord, StepRecord } from '../../../../store/ports/index.ts';
import { isFinal } from '../states.ts';
import { type KnownSteps, knownSteps } from './known-steps.ts';

/** Outcome of the function and its job. `isCancel`: the function rethrew its cancellation. */
export type Verdict = { output: JsonValue } | { error: RunError; isCancel?: true | undefined };

/** A step of the function itself, in flight within its process. */
export interface OwnFlight {
  attempt: number;
  timeoutMs: number;
  idempotencyKey: string;
  /** Whether the request to begin the step, or to abort its signal, was answered. */
  isTold: boolean;
  isToldToStop: boolean;
}

/** One replay of a workflow's function, with its open requests and in-flight steps. Steps are given by index. */
export interface ReplayState {
  id: number;
  /** Number of the open request of each step. */
  asked: Map<number, number>;
  flying: Map<number, OwnFlight>;
  met: Set<number>;
  /** Steps answered with `wait` and with nothing since. */
  owed: Set<number>;
  /** Number of the open request that waits for news. */
  watcher: number | null;
  /** Whether the process runs the function. */
  hasBegun: boolean;
  isAborted: boolean;
  /** Whether the timer of a function without requests runs. */
  isIdle: boolean;
  settledSteps: number;
  /** On the monotonic clock, in ms. */
  startedAt: number;
}

/** The function of a workflow in code. Between replays only rows exist. */
export interface CodeState {
  known: KnownSteps;
  replay: ReplayState | null;
  replays: number;
  slot: 'none' | 'queued' | 'held';
  verdict: Verdict | null;
  /** Whether a replay is due; null until the job was first read. */
  due: boolean | null;
  /** Steps whose outcome the function waits for. */
  owed: Set<number>;
  /** Failed replays in a row. */
  failures: number;
  /** Processes lost during replays since the run was claimed. */
  losses: number;
  /** Whether the backoff after a failed replay runs. */
  isResting: boolean;
  /** Set when the plugin was unavailable at the start of a replay; cleared by a reload or at `wakeAt`. */
  away: { wakeAt: number } | null;
  /** Forces a replay although the job waits: the plugin was unavailable, or a crash may have lost a due replay. */
  mustReplay: boolean;
  /** Whether the plugin was unavailable at the latest replay. */
  wasAway: boolean;
  /** Neither the function nor its clean-up continues. */
  isStopped: boolean;
  knowsEnding: boolean;
  /** Whether the function learned from a cancelled step that its run is ending; null until the job ends. */
  wasTold: boolean | null;
}

export function newCodeState({ reason, status }: RunRecord, steps: readonly StepRecord[]): CodeState {
  return {
    known: knownSteps(steps),
    replay: null,
    replays: 0,
    slot: 'none',
    verdict: null,
    due: null,
    owed: new Set(steps.filter((step) => !isFinal(step.status)).map(({ index }) => index)),
    failures: 0,
    losses: 0,
    isResting: false,
    away: null,
    mustReplay: reason === 'plugin' || status === 'queued',
    wasAway: reason === 'plugin',
    isStopped: false,
    knowsEnding: false,
    wasTold: null,
  };
}

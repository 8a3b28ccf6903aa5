import { seconds } from '../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { CODE_JOB } from '../definition/compile-code.ts';
import type { CodeState, ReplayState } from '../run/code-state.ts';
import type { ReplayOutcome } from '../run/events.ts';
import type { Failure } from '../run/failure.ts';
import { isAtWork, type JobState, jobAt, stepAtIndex, stepKeyOf } from '../run/state.ts';
import { wasKilled } from '../steps/interrupted.ts';
import { missedError, strayedError } from './code-steps.ts';
import { errorOf, outputOf, WITHOUT_RESULT } from './code-verdict.ts';
import { settleAttempt } from './settle.ts';
import type { Turn } from './turn.ts';

/** Maximum number of retries of a replay after a temporary failure, such as a lack of capacity or a killed process. */
const MAX_FAILURES = 10;
const MAX_PAUSE_SECONDS = 60;
const PASSING_CLASSES = new Set(['network', 'rate_limit', 'server']);

type Failed = Extract<ReplayOutcome, { end: 'failed' }>;

/** Ends the replay in flight and fails the in-flight steps of the replay. Another replay can follow. */
export function endReplay(
  turn: Turn,
  code: CodeState,
  replay: ReplayState,
  outcome: ReplayOutcome,
  isAborted: boolean,
): void {
  const job = jobAt(turn.state, CODE_JOB);
  const inFlight = [...replay.inFlight.keys()];
  const failed = outcome.end === 'failed' ? outcome.failure : null;
  code.replay = null;
  code.slot = 'none';
  if (replay.isIdle) turn.effect({ type: 'timer.clear', name: 'idle' });
  if (replay.hasBegun) turn.unmark();
  failSteps(turn, job, inFlight, failed ? failureInFlight(failed, inFlight.length, isAborted) : ABANDONED);
  code.wasUnavailable = failed?.away !== undefined;
  if (code.verdict || code.isStopped) return;
  if (outcome.end === 'failed') takeFailure(turn, code, replay, outcome, inFlight);
  else judge(turn, code, replay, outcome);
}

const ABANDONED: Failure = {
  errorClass: 'code',
  error: {
    code: 'STEP_FAILED',
    message: "The workflow's function ended while the step was in flight.",
    details: {},
  },
  retryAfterMs: null,
};

function failSteps(turn: Turn, job: JobState, indexes: readonly number[], failure: Failure): void {
  for (const index of indexes) {
    const step = stepAtIndex(job, index);
    turn.effect({ type: 'attempt.release', step: stepKeyOf(step) });
    if (isAtWork(step)) settleAttempt(turn, step, { failure }, { isIdempotent: false });
  }
}

/**
 * Returns the failure of the steps that were in flight when a replay failed. If the cause is unknown, for example after
 * an abort, the steps count as interrupted.
 */
function failureInFlight(failure: Failure, flights: number, isAborted: boolean): Failure {
  const isBlameless = isAborted || (failure.errorClass === 'code' && flights > 1);
  if (!isBlameless) return failure;
  const { message, details } = failure.error;
  const error = { code: 'STEP_FAILED', message, details };
  return { errorClass: 'code', error, retryAfterMs: null, interrupted: true };
}

function judge(
  turn: Turn,
  code: CodeState,
  { reachedSteps, settledSteps }: ReplayState,
  outcome: Exclude<ReplayOutcome, Failed>,
): void {
  const { run, limits } = turn.state;
  const job = jobAt(turn.state, CODE_JOB);
  code.failures = 0;
  if (outcome.end === 'returned') {
    const missed = missedError(run, job, reachedSteps, outcome.missed);
    code.verdict = missed ? { error: missed } : outputOf(outcome.output as JsonValue, limits.maxOutputChars);
  } else if (outcome.end === 'strayed') {
    code.verdict = { error: strayedError(run, job, reachedSteps, outcome.missed) };
  } else if (outcome.end === 'threw') {
    code.verdict = { error: errorOf(turn, job, outcome), isCancel: outcome.cancelled };
  } else if (code.awaitedSteps.size === 0) {
    if (settledSteps > 0) code.due = true;
    else code.verdict = { error: WITHOUT_RESULT };
  }
}

/**
 * Handles a failed replay. If no step was run although the plugin was available, retries a temporary failure with
 * backoff. Fails the job after a permanent failure or too many retries.
 */
function takeFailure(
  turn: Turn,
  code: CodeState,
  replay: ReplayState,
  { failure }: Failed,
  inFlight: readonly number[],
): void {
  const { error, errorClass, away } = failure;
  turn.log({ level: 'warn', message: error.message, job: CODE_JOB });
  if (failure.interrupted || inFlight.length > 1) code.losses++;
  if (away || inFlight.length > 0 || replay.settledSteps > 0) {
    code.awaitedSteps = new Set([...replay.awaitedSteps, ...inFlight]);
    code.due = away !== undefined || inFlight.length === 0;
    if (away) {
      turn.effect({ type: 'plugin.awaited', pluginId: away.pluginId, why: error.message });
      code.away = { wakeAt: turn.note(turn.now + away.pauseMs) };
    } else code.failures = 0;
    return;
  }
  const mayPass = failure.interrupted || wasKilled(failure) || PASSING_CLASSES.has(errorClass);
  if (!mayPass || ++code.failures > MAX_FAILURES) {
    code.verdict = { error };
    return;
  }
  const backoffMs = seconds(Math.min(MAX_PAUSE_SECONDS, 2 ** (code.failures - 1)));
  const ms = Math.max(failure.retryAfterMs ?? 0, backoffMs);
  code.isResting = true;
  turn.effect({ type: 'timer.set', name: 'rest', ms, event: { type: 'replay.rested' } });
}

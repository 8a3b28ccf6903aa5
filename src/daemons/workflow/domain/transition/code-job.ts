import type { RunEnding } from '../../../../contracts/index.ts';
import { hours, minutes } from '../../../../kit/time/duration.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { CodeState, ReplayState, Verdict } from '../run/code-state.ts';
import { isAtWork, type JobState, type StepState, stepAtIndex } from '../run/state.ts';
import { isFinal } from '../states.ts';
import { canContinue, originOf } from './code-steps.ts';
import { setJob } from './records.ts';
import { abortErrorOf, abortReplay } from './replay-abort.ts';
import { isReplaying } from './replay-state.ts';
import { advanceStep, endStep, stopStep } from './steps.ts';
import { isBehindSuspect } from './suspect-steps.ts';
import type { Turn } from './turn.ts';

// This module advances the job of a workflow written in code. Each replay restarts the function and returns recorded
// results for finished steps. A replay ends when all branches wait. @spec docs/workflows.md "Workflows in code"

const MAX_REPLAY_MS = hours(2);
/** Age at which a replay stops starting steps. Each started step can then run for its maximum duration. */
const RECYCLE_MS = MAX_REPLAY_MS - minutes(60);

export function advanceCode(turn: Turn, code: CodeState, job: JobState): void {
  const { state } = turn;
  learn(code, job);
  if (code.verdict) {
    finish(turn, code, job, code.verdict);
    return;
  }
  for (const step of job.steps) if (mayAdvance(turn, code, job, step)) advanceStep(turn, step, job);
  if (code.away && turn.isPast(code.away.wakeAt)) code.away = null;
  const isWanted = !code.away && (code.due || canContinue(code, (index) => isReady(turn, job, index)));
  if (!code.replay && !code.isResting && isWanted && !state.draining) beginReplay(turn, code, job);
  // A waiting job gets no replay when its run is claimed again. A service that stops during the pause after a failed
  // replay therefore leaves the job running.
  const status = isReplaying(state) || isWanted || code.isResting ? 'running' : 'waiting';
  if (job.record.status !== status) setJob(turn, job, status);
}

/**
 * Cancels all steps that are not clean-up steps. The cancellation errors signal the end of the run to the workflow
 * function.
 */
export function cleanUpCode(turn: Turn, code: CodeState, job: JobState): void {
  learn(code, job);
  if (!code.knowsEnding) {
    code.knowsEnding = true;
    stopRest(turn, code);
    if (!code.replay) code.due = true;
  }
  for (const step of job.steps)
    if (!isFinal(step.record.status) && !turn.step(step).cleansUp) endStep(turn, step, 'cancelled');
  advanceCode(turn, code, job);
}

/** Stops the function and aborts the replay in flight, because the run or job ends. */
export function stopCode(turn: Turn, code: CodeState, how: RunEnding): void {
  code.isStopped = true;
  stopRest(turn, code);
  if (code.replay) abortReplay(turn, abortErrorOf(how));
  else if (code.slot !== 'none') {
    code.slot = 'none';
    turn.effect({ type: 'slot.release', owner: 'replay' });
  }
}

export function isClosing({ state, monotonic }: Turn, { startedAt }: ReplayState): boolean {
  return state.draining || monotonic >= startedAt + RECYCLE_MS;
}

/**
 * Returns whether the function can continue with a step. An ended step is ready. A step with inline code is also ready
 * before its code has begun, or when its wait is over.
 */
export function isReady(turn: Turn, job: JobState, index: number): boolean {
  const step = stepAtIndex(job, index);
  const { record, wait } = step;
  if (isFinal(record.status)) return true;
  const compiled = turn.step(step);
  if (!isOwnStep(compiled)) return false;
  if (record.status !== 'waiting') return record.status !== 'running';
  if (wait?.for === 'retry') return record.wakeAt !== null && turn.isPast(record.wakeAt);
  const name = `${record.jobKey}.${compiled.id}`;
  return turn.state.inbox.some((entry) => entry.kind === wait?.for && entry.name === name);
}

/** Sets `code.due` once after the run was claimed. A replay of a waiting job is due only if `mustReplay` is set. */
function learn(code: CodeState, job: JobState): void {
  if (code.due !== null) return;
  code.due = job.record.status !== 'waiting' || code.mustReplay;
  code.mustReplay = false;
}

function stopRest(turn: Turn, code: CodeState): void {
  if (code.isResting) turn.effect({ type: 'timer.clear', name: 'rest' });
  code.isResting = false;
}

/**
 * Returns whether a step can advance. An inline step of the workflow function advances only while the function requests
 * the step and the replay is allowed to start steps.
 */
function mayAdvance(turn: Turn, { replay }: CodeState, job: JobState, step: StepState): boolean {
  if (isFinal(step.record.status)) return false;
  if (!isOwnStep(turn.step(step))) return true;
  if (!replay?.openRequests.has(step.record.index)) return false;
  return !isClosing(turn, replay) && !isBehindSuspect(turn, job, step);
}

function beginReplay(turn: Turn, code: CodeState, job: JobState): void {
  const { state } = turn;
  const { run } = state;
  if (code.slot === 'queued') return;
  if (code.slot === 'none' && !turn.takeSlot('replay')) {
    code.slot = 'queued';
    turn.effect({ type: 'slot.request', owner: 'replay' });
    return;
  }
  code.slot = 'held';
  code.due = false;
  // The job and the replay share this set. After the replay, a step in the set that becomes ready triggers another
  // replay.
  code.awaitedSteps = new Set();
  code.replay = {
    id: ++code.replays,
    ...{
      openRequests: new Map(),
      inFlight: new Map(),
      reachedSteps: new Set(),
      awaitedSteps: code.awaitedSteps,
      watcher: null,
    },
    ...{ hasBegun: false, isAborted: false, isIdle: false, settledSteps: 0, startedAt: turn.monotonic },
  };
  turn.effect({
    type: 'replay.start',
    start: {
      ...originOf(state),
      replay: code.replay.id,
      jobKey: job.record.key,
      remembered: job.steps.filter(({ record }) => isFinal(record.status)).length,
      recalls: job.steps.length > 0,
      marksBegin: state.isFromBefore || run.crashes + run.kills > 0,
      timeoutMs: MAX_REPLAY_MS,
      isAlone: code.losses > 0,
    },
  });
}

/** Stops the open steps, and ends the job once no step is in flight. */
function finish(turn: Turn, code: CodeState, job: JobState, verdict: Verdict): void {
  if (code.replay) return;
  code.learnedOfEnd ??= job.steps.some(({ record }) => record.status === 'cancelled');
  const open = job.steps.filter(({ record }) => !isFinal(record.status));
  for (const step of open) stopStep(turn, step, 'cancelled');
  if (open.some(isAtWork)) return;
  for (const step of open) endStep(turn, step, 'cancelled', true);
  if (job.record.status === 'waiting') setJob(turn, job, 'running');
  if ('output' in verdict) {
    job.outputs = { result: verdict.output };
    job.record.outputs = JSON.stringify(job.outputs);
  }
  // If a step of an ending job was cancelled before the function ended, the function received the cancellation error,
  // and the job gets its end status. Otherwise, the outcome of the function counts.
  if (job.record.ending && code.learnedOfEnd) {
    const error = 'error' in verdict && !verdict.isCancel ? verdict.error : undefined;
    setJob(turn, job, job.record.ending, error);
    return;
  }
  if ('output' in verdict) {
    setJob(turn, job, 'succeeded');
    return;
  }
  job.failed = true;
  setJob(turn, job, 'failed', verdict.error);
}

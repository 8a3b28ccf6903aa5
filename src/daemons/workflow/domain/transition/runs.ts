import { type JobState, jobsOf, type RunState } from '../run/state.ts';
import { move } from '../states.ts';
import { haveChildrenEnded } from './children.ts';
import { beginCleanUp, cleanUpOutcome, countCleanUps, isOverdue, parkCleanUp } from './clean-up.ts';
import { endingError } from './ending-error.ts';
import { advanceGroup, stopGroup } from './jobs.ts';
import { setRun } from './records.ts';
import { isReplaying } from './replay-state.ts';
import { FAILED_STATES, resultOf } from './results.ts';
import { runOutput } from './scopes.ts';
import type { Turn } from './turn.ts';
import { waitReasonOf } from './wait-reason.ts';
import { wakesOf } from './wakes.ts';

/** Starts a claimed run, or continues a claimed run that was started before. */
export function beginRun(turn: Turn): void {
  const { state, program } = turn;
  const { run } = state;
  const { timeoutMs } = program.workflow.definition;
  const isFirst = run.startedAt === null;
  run.fence = state.fence;
  run.startedAt ??= turn.now;
  if (run.deadlineAt === null && timeoutMs !== undefined)
    run.deadlineAt = turn.note(run.startedAt + timeoutMs);
  run.ready = false;
  run.reason = null;
  run.wakeAt = null;
  retryPlugins(turn);
  if (!state.ending) run.status = move('run', run.status, 'running', 'engine');
  turn.touchRun();
  turn.event({ type: isFirst ? 'run.started' : 'run.continued' });
}

/** Makes all plugin waits of the run due immediately. */
export function retryPlugins(turn: Turn): void {
  const { state } = turn;
  turn.effect({ type: 'plugins.retried' });
  for (const { steps } of jobsOf(state))
    for (const { record, wait } of steps)
      if (record.status === 'waiting' && wait?.for === 'plugin') record.wakeAt = turn.now;
  if (state.code) state.code.away = null;
}

/**
 * Advances all jobs of a run. If no work is in flight, ends the run or unloads the run from memory until the next
 * wake-up.
 */
export function advanceRun(turn: Turn): void {
  const { state, program } = turn;
  const { run } = state;
  state.isStale = false;
  if (!state.ending && run.deadlineAt !== null && turn.isPast(run.deadlineAt))
    beginCleanUp(turn, 'timed_out', 'engine');
  const isLate = isOverdue(turn);
  for (const job of program.workflow.jobs) {
    if (isLate) stopGroup(turn, job, state.ending!);
    else advanceGroup(turn, job);
  }
  countCleanUps(turn);
  conclude(turn);
  if (state.phase === 'active') setTimer(turn);
}

function setTimer(turn: Turn): void {
  const { state } = turn;
  const inMs = wakesInMs(turn);
  if (Number.isFinite(inMs))
    turn.effect({ type: 'timer.set', name: 'wake', ms: inMs, event: { type: 'advance' } });
  else if (state.hasTimer) turn.effect({ type: 'timer.clear', name: 'wake' });
  state.hasTimer = Number.isFinite(inMs);
}

/**
 * Returns the time until the first wait ends, in ms. Short waits follow the monotonic clock, so the wait with the
 * earliest `wakeAt` does not always end first.
 */
function wakesInMs(turn: Turn): number {
  return Math.min(...wakesOf(turn).map((at) => turn.leftMs(at)));
}

/** Ends the run, or unloads the run from memory until its next wake-up. Does nothing while work is in flight. */
function conclude(turn: Turn): void {
  const { state, program } = turn;
  const jobs = jobsOf(state);
  if (isReplaying(state) || jobs.some(({ steps }) => steps.some(({ flight }) => flight !== 'idle'))) return;
  const isOver = program.workflow.jobs.every(({ id }) => resultOf(state, program, id) !== null);
  const isEvaluating = [...state.answers.values()].includes('pending');
  if (isEvaluating && !(isOver && state.ending)) return;
  const isAlone = !isOver || !state.ending || haveChildrenEnded(turn);
  if (isAlone === undefined) return;
  if (isOver && isAlone) endRun(turn, jobs);
  else parkRun(turn, jobs, isAlone);
}

function parkRun(turn: Turn, jobs: readonly JobState[], isAlone: boolean): void {
  const { state } = turn;
  const { run } = state;
  state.phase = 'parking';
  const wakeAt = state.draining ? turn.now : Math.min(...wakesOf(turn));
  run.wakeAt = Number.isFinite(wakeAt) ? wakeAt : null;
  releaseRun(state);
  run.reason = isAlone ? (state.code?.away ? 'plugin' : waitReasonOf(jobs)) : 'child';
  if (state.ending) parkCleanUp(turn);
  else setRun(turn, 'waiting', 'engine', run.wakeAt === null ? undefined : { wakeAt: run.wakeAt });
  turn.effect({ type: 'leave', how: 'parked', wakesInMs: wakesInMs(turn) });
}

function endRun(turn: Turn, jobs: readonly JobState[]): void {
  const { state, program } = turn;
  const { run } = state;
  const [first] = jobs;
  const { code } = program.workflow;
  // A function that requested no step after the cancellation received no cancellation error. The run then ends with the
  // function's own result.
  const wasUntold = code && ['succeeded', 'failed'].includes(first?.record.status ?? '');
  if (state.ending && !wasUntold) {
    const { timeoutMs } = program.workflow.definition;
    const ended = { ending: state.ending, program, jobs, cleanUp: cleanUpOutcome(turn), timeoutMs };
    const error = endingError(ended);
    run.error = error && JSON.stringify(error);
    const result = first?.outputs.result;
    if (code && result !== undefined) run.output = JSON.stringify(result);
    finishRun(turn, state.ending);
    return;
  }
  const failed = jobs.find(
    ({ record }) => FAILED_STATES.has(record.status) && !program.job(record.key).continueOnError,
  );
  if (failed) {
    run.error = failed.record.error;
    finishRun(turn, 'failed', { job: failed.record.key });
    return;
  }
  const output = runOutput(turn);
  if (!output) return;
  if ('failure' in output) {
    run.error = JSON.stringify(output.failure.error);
    finishRun(turn, 'failed');
    return;
  }
  run.output = JSON.stringify(output.value);
  finishRun(turn, 'succeeded');
}

function finishRun(
  turn: Turn,
  status: 'succeeded' | 'failed' | 'cancelled' | 'timed_out',
  data?: Record<string, unknown>,
): void {
  const { state } = turn;
  state.phase = 'ended';
  state.run.wakeAt = null;
  state.run.finishedAt = turn.now;
  releaseRun(state);
  setRun(turn, status, 'engine', data);
  turn.effect({ type: 'leave', how: 'ended', wakesInMs: Number.POSITIVE_INFINITY });
}

function releaseRun({ run }: RunState): void {
  run.inFlight = false;
  run.fence = null;
  run.ready = false;
  run.reason = null;
}

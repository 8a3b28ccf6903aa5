import type { RunError, StepAnswer } from '../../../../contracts/index.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { cancelledError, replayIsOver } from '../code/replay-errors.ts';
import { CODE_JOB, isOwnStep } from '../definition/compile-code.ts';
import type { CodeState, ReplayState } from '../run/code-state.ts';
import type { RunEvent } from '../run/events.ts';
import { isAtWork, type JobState, jobAt, type StepState, stepAtIndex, stepKeyOf } from '../run/state.ts';
import { isFinal } from '../states.ts';
import { classOfCode } from '../steps/retry-policy.ts';
import { isClosing, isReady } from './code-job.ts';
import { enteredStep } from './code-steps.ts';
import { recalledPage } from './recalled.ts';
import { abortReplay, CANCELLED } from './replay-abort.ts';
import { plainFailure, settleAttempt } from './settle.ts';
import type { Turn } from './turn.ts';

/** Maximum time that the function can run between steps before the function counts as hung. */
const MAX_IDLE_MS = seconds(60);

type RequestEvent = Extract<RunEvent, { replay: number; request: number | null }>;

/** Handles a request of the workflow function. Returns whether the run must be advanced. */
export function takeRequest(turn: Turn, code: CodeState, event: RequestEvent): boolean {
  const { replay } = code;
  if (!replay || replay.id !== event.replay) {
    if (event.request !== null) refuse(turn, event.request, OVER);
    return false;
  }
  const job = jobAt(turn.state, CODE_JOB);
  switch (event.type) {
    case 'replay.begun':
      return begin(turn, replay, event.request);
    case 'replay.recalled':
      recall(turn, job, code, replay, event);
      return false;
    case 'replay.entered':
      return enter(turn, job, code, replay, event);
    case 'replay.settled':
      settle(turn, job, code, replay, event);
      return false;
    case 'replay.watched':
      endWatch(turn, replay);
      replay.watcher = event.request;
      return false;
    case 'replay.unwatched':
      if (replay.watcher === event.request) endWatch(turn, replay);
      return false;
  }
}

const OVER: RunError = { code: 'CONFLICT', message: replayIsOver().message, details: {} };

function refuse(turn: Turn, request: number, error: RunError): void {
  turn.effect({ type: 'replay.refuse', request, error });
}

/**
 * Marks the run as in flight when the function begins, so that a service crash counts against the run. Returns whether
 * `advanceRun` must be called.
 */
function begin(turn: Turn, replay: ReplayState, request: number | null): boolean {
  if (!replay.hasBegun) turn.mark();
  replay.hasBegun = true;
  if (request !== null) turn.effect({ type: 'replay.reply', request, reply: { begun: true } });
  // An ending run is advanced, because its clean-up timer runs from this point on.
  return turn.state.run.ending !== null;
}

function recall(
  turn: Turn,
  job: JobState,
  { known }: CodeState,
  replay: ReplayState,
  { request, after }: Extract<RequestEvent, { type: 'replay.recalled' }>,
): void {
  const answerOf = (step: StepState) => answerFor(turn, replay, step);
  const { steps, indexes, next } = recalledPage(turn, job, known, after, answerOf);
  for (const [position, index] of indexes.entries()) {
    replay.reachedSteps.add(index);
    if (steps[position]!.answer.state === 'wait') replay.awaitedSteps.add(index);
  }
  turn.effect({ type: 'replay.reply', request, reply: { steps, next } });
}

function enter(
  turn: Turn,
  job: JobState,
  code: CodeState,
  replay: ReplayState,
  { request, step: requested }: Extract<RequestEvent, { type: 'replay.entered' }>,
): boolean {
  const entered = enteredStep(turn.state, turn.program, job, requested);
  if ('error' in entered) {
    if (entered.isFatal) {
      code.verdict ??= { error: entered.error };
      abortReplay(turn, CANCELLED);
    }
    refuse(turn, request, entered.error);
    return false;
  }
  const { step, isNew } = entered;
  if (isNew) turn.touchStep(step);
  replay.openRequests.set(step.record.index, request);
  replay.reachedSteps.add(step.record.index);
  // Finished steps, and steps that wait outside the function, do not need a call of `advanceRun`. A replay can request
  // thousands of such steps.
  const { status } = step.record;
  return !isFinal(status) && !(status === 'waiting' && !isOwnStep(turn.step(step)));
}

function settle(
  turn: Turn,
  job: JobState,
  { known }: CodeState,
  replay: ReplayState,
  { request, step: { id, attempt, outcome } }: Extract<RequestEvent, { type: 'replay.settled' }>,
): void {
  const index = known.byId.get(id) ?? -1;
  if (replay.inFlight.get(index)?.attempt !== attempt) {
    refuse(turn, request, OVER);
    return;
  }
  replay.inFlight.delete(index);
  replay.settledSteps++;
  replay.openRequests.set(index, request);
  const step = stepAtIndex(job, index);
  turn.effect({ type: 'attempt.release', step: stepKeyOf(step) });
  if (!isAtWork(step)) return;
  turn.state.isStale = true;
  if ('output' in outcome) {
    settleAttempt(turn, step, { output: outcome.output as JsonValue }, { isIdempotent: false });
    return;
  }
  const { error, errorClass = classOfCode(error.code), retryAfterMs = null } = outcome;
  const failure = plainFailure(errorClass, error, retryAfterMs);
  settleAttempt(turn, step, { failure }, { isIdempotent: false });
}

/** Replies to all open requests whose outcome is available. */
export function answerRequests(turn: Turn, code: CodeState, replay: ReplayState): void {
  const job = jobAt(turn.state, CODE_JOB);
  for (const [index, request] of replay.openRequests) {
    const reply = answerFor(turn, replay, stepAtIndex(job, index));
    if (!reply) continue;
    replay.openRequests.delete(index);
    if (reply.state === 'wait') replay.awaitedSteps.add(index);
    else replay.awaitedSteps.delete(index);
    turn.effect({ type: 'replay.reply', request, reply });
  }
  if (replay.watcher !== null) answerWatcher(turn, job, code, replay);
  setIdleTimer(turn, replay);
}

function answerFor(turn: Turn, replay: ReplayState, step: StepState): StepAnswer | undefined {
  const { record, output, error } = step;
  const ended = { order: record.endOrder!, at: record.finishedAt! };
  if (record.status === 'succeeded') return { state: 'done', output, ...ended };
  if (isFinal(record.status)) {
    const told = error ?? cancelledError(turn.state.run.ending ?? 'cancelled');
    return { state: 'failed', status: record.status, error: told, ...ended };
  }
  if (!isOwnStep(turn.step(step)) || record.status === 'waiting') return { state: 'wait' };
  const flight = replay.inFlight.get(record.index);
  if (flight && !flight.isBeginAnswered) {
    flight.isBeginAnswered = true;
    const { attempt, timeoutMs, idempotencyKey } = flight;
    return { state: 'run', attempt, timeoutMs, idempotencyKey };
  }
  return record.status !== 'running' && isClosing(turn, replay) ? { state: 'wait' } : undefined;
}

/**
 * Replies to the open `watch` request if a waiting step can continue or a running step must be aborted. The reply
 * contains these steps.
 */
function answerWatcher(turn: Turn, job: JobState, { known }: CodeState, replay: ReplayState): void {
  const idOf = (index: number): string => known.found.get(index)!.id;
  const ready = [...replay.awaitedSteps].filter((index) => isReady(turn, job, index)).map(idOf);
  const stop: string[] = [];
  for (const [index, flight] of replay.inFlight) {
    if (flight.isAbortAnswered || stepAtIndex(job, index).stopped === null) continue;
    flight.isAbortAnswered = true;
    stop.push(idOf(index));
  }
  if (ready.length + stop.length > 0) endWatch(turn, replay, ready, stop);
}

function endWatch(turn: Turn, replay: ReplayState, ready: string[] = [], stop: string[] = []): void {
  const request = replay.watcher;
  replay.watcher = null;
  if (request !== null) turn.effect({ type: 'replay.reply', request, reply: { ready, stop } });
}

/**
 * Sets the idle timer while the function has no open request and no step in flight. The timer ends the function,
 * because an idle function occupies a process.
 */
function setIdleTimer(turn: Turn, replay: ReplayState): void {
  const isIdle = replay.hasBegun && replay.openRequests.size + replay.inFlight.size === 0;
  if (isIdle) {
    const event = { type: 'replay.idle', replay: replay.id } as const;
    turn.effect({ type: 'timer.set', name: 'idle', ms: MAX_IDLE_MS, event });
  } else if (replay.isIdle) turn.effect({ type: 'timer.clear', name: 'idle' });
  replay.isIdle = isIdle;
}

export function endIdle(turn: Turn, id: number): void {
  const replay = turn.state.code?.replay;
  if (replay?.id !== id || !replay.isIdle) return;
  const message = `The workflow's function did nothing for ${MAX_IDLE_MS / 1000} s between its steps. Move long work into a step.`;
  abortReplay(turn, { code: 'EXECUTION_TIMEOUT', message });
}

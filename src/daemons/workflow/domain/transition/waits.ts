import type { StepWait } from '../../../../contracts/index.ts';
import type { InboxRecord, RunRecord } from '../../../../store/ports/index.ts';
import type { StepFacts } from '../run/events.ts';
import type { Failure } from '../run/failure.ts';
import type { StepState } from '../run/state.ts';
import { resume, startAttempt } from './attempts.ts';
import { expireChild, lookUpChild } from './children.ts';
import { endAttempt, failStep, succeed } from './records.ts';
import { builtInFacts, endStopped, failAttempt, plainFailure } from './settle.ts';
import type { Turn } from './turn.ts';

/** Continues a waiting step if its wait is over. While the run drains, only a timeout ends a wait. */
export function tryWake(turn: Turn, step: StepState): void {
  const { wait, record } = step;
  const isDue = record.wakeAt !== null && turn.isPast(record.wakeAt);
  const entry = entryFor(turn, step);
  if (isDue && !entry && (wait?.for === 'signal' || wait?.for === 'approval')) {
    failWait(turn, step, wait);
    return;
  }
  // An inbox entry must not be consumed while the run drains. The result of its step, such as a retry, could be lost.
  if (turn.state.draining) return;
  if (entry) {
    takeEntry(turn, step, entry);
    return;
  }
  if (wait?.for === 'child') {
    if (isDue) expireChild(turn, step);
    else lookUpChild(turn, step);
    return;
  }
  if (!isDue) return;
  if (wait?.for === 'time') {
    succeed(turn, step, { waitedUntil: record.wakeAt });
    endAttempt(turn, step, 'succeeded', null);
  } else if (wait?.for === 'plugin' && wait.interrupted) resume(turn, step, builtInFacts(turn, step));
  else if (wait?.for === 'plugin' || wait?.for === 'retry') startAttempt(turn, step);
}

/** Fails a step whose signal or approval did not come before its timeout. */
function failWait(turn: Turn, step: StepState, wait: StepWait): void {
  const what = wait.for === 'signal' ? `The signal "${wait.name}"` : 'The approval';
  const failure = plainFailure('timeout', {
    code: 'STEP_FAILED',
    message: `${what} did not come in time.`,
    details: { reason: 'timeout', waitedFor: wait.for },
  });
  endAttempt(turn, step, 'timed_out', failure);
  failStep(turn, step, failure, 'timed_out');
}

function stepIdOf(turn: Turn, step: StepState): string {
  return `${step.record.jobKey}.${turn.step(step).id}`;
}

function entryFor(turn: Turn, step: StepState): InboxRecord | undefined {
  const { wait, record } = step;
  if (wait?.for !== 'signal' && wait?.for !== 'approval' && wait?.for !== 'decision') return undefined;
  if (record.status !== 'waiting' || turn.state.inbox.length === 0) return undefined;
  const name = wait.for === 'signal' ? wait.name : stepIdOf(turn, step);
  const mayBeAgent = wait.for === 'signal' && wait.agents === true;
  return turn.state.inbox.find(
    (entry) =>
      entry.name === name && (entry.kind === wait.for || (mayBeAgent && entry.kind === 'agent_signal')),
  );
}

function takeEntry(turn: Turn, step: StepState, entry: InboxRecord): void {
  const { state } = turn;
  state.inbox = state.inbox.filter((other) => other !== entry);
  turn.taken(entry.n, stepIdOf(turn, step));
  const payload = JSON.parse(entry.payload);
  if (entry.kind === 'signal' || entry.kind === 'agent_signal') {
    succeed(turn, step, { payload, receivedAt: entry.at, ...(entry.sentBy ? { by: entry.sentBy } : {}) });
    endAttempt(turn, step, step.record.status, null);
    return;
  }
  const isApproval = entry.kind === 'approval';
  if (!isApproval && payload.action === 'retry') {
    startAttempt(turn, step);
    return;
  }
  if (isApproval ? payload.approved : payload.action === 'succeed') {
    succeed(turn, step, isApproval ? payload : payload.output);
    if (isApproval) endAttempt(turn, step, 'succeeded', null);
    return;
  }
  const failure = plainFailure('code', {
    code: 'STEP_FAILED',
    message: isApproval ? 'The approval was refused.' : 'An operator declared the interrupted step failed.',
    details: { reason: isApproval ? 'refused' : 'interrupted', ...payload },
  });
  if (isApproval) endAttempt(turn, step, 'failed', failure);
  failStep(turn, step, failure);
}

/** Settles a step with the outcome of its ended child run. */
export function settleChild(turn: Turn, step: StepState, child: RunRecord, facts: StepFacts): void {
  if (child.status === 'succeeded') {
    succeed(turn, step, child.output === null ? null : JSON.parse(child.output));
    endAttempt(turn, step, step.record.status, null);
    return;
  }
  if (step.stopped) {
    endStopped(turn, step, step.stopped);
    return;
  }
  if (step.wait?.timedOut) {
    failAttempt(turn, step, childTimeout(turn, step, child), 'timed_out', facts);
    return;
  }
  const failure = plainFailure('code', {
    code: 'STEP_FAILED',
    message: `The workflow "${child.workflowId}" (run ${child.id}) ended as ${child.status}.`,
    details: { runId: child.id, status: child.status, error: child.error && JSON.parse(child.error) },
  });
  // A cancelled child is not retried, because its cancellation was deliberate.
  if (child.status !== 'cancelled') {
    failAttempt(turn, step, failure, 'failed', facts);
    return;
  }
  endAttempt(turn, step, 'failed', failure);
  failStep(turn, step, failure);
}

/** Returns the failure of a step whose timeout passed before its child run ended. */
function childTimeout(turn: Turn, step: StepState, { id, workflowId, status }: RunRecord): Failure {
  const { timeoutMs } = turn.step(step);
  return plainFailure('timeout', {
    code: 'EXECUTION_TIMEOUT',
    message: `The step did not end within ${timeoutMs} ms; its child, the workflow "${workflowId}" (run ${id}), was cancelled.`,
    details: { timeoutMs, runId: id, status },
  });
}

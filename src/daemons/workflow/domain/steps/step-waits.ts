import type { InboxRecord, RunRecord } from '../../../../store/ports/index.ts';
import { type StepPart, stepIdOf } from '../run/run-parts.ts';
import { ChildEnds } from './child-ends.ts';
import { StepFailure } from './retry-policy.ts';
import type { StepDriverDeps } from './step-driver.ts';

interface StepWaitsDeps
  extends Pick<
    StepDriverDeps,
    'journal' | 'recorder' | 'state' | 'deadlines' | 'clock' | 'logger' | 'finishedRuns' | 'cancelChild'
  > {
  /** Begins the next attempt. */
  startEffect(part: StepPart): void;
  /** Resumes an interrupted step: begins its next attempt, or waits for a decision. */
  goOn(part: StepPart): void;
  /** Fails an attempt; another one follows if the step's retry policy allows it. */
  failAttempt(part: StepPart, failure: StepFailure, status: 'failed' | 'timed_out'): void;
}

/** Ends the waits of steps: for a time, signal, approval, decision, child or plugin. */
export function createStepWaits(deps: StepWaitsDeps) {
  const { journal, recorder, state, deadlines, startEffect, goOn, failAttempt } = deps;
  const children = new ChildEnds({ ...deps, settle: settleChild });
  const { endAttempt, succeed, failStep } = recorder;

  /** Resumes a step whose wait is over. */
  function tryWake(part: StepPart) {
    const { wait, record } = part;
    const isDue = record.wakeAt !== null && deadlines.isPast(record.wakeAt);
    if (wait?.for === 'retry' && isDue) return startEffect(part);
    if (wait?.for === 'plugin') {
      if (isDue && !state.draining) (wait.interrupted ? goOn : startEffect)(part);
      return;
    }
    if (wait?.for === 'time' && isDue) {
      succeed(part, { waitedUntil: record.wakeAt });
      return endAttempt(part, 'succeeded', null);
    }
    if (wait?.for === 'child') return isDue ? children.expire(part) : children.look(part);
    const entry = entryFor(part);
    if (entry) return useEntry(part, entry);
    if (isDue && (wait?.for === 'signal' || wait?.for === 'approval')) {
      const what = wait.for === 'signal' ? `The signal "${wait.name}"` : 'The approval';
      const failure = new StepFailure('timeout', {
        code: 'STEP_FAILED',
        message: `${what} did not come in time.`,
        details: { reason: 'timeout', waitedFor: wait.for },
      });
      endAttempt(part, 'timed_out', failure);
      failStep(part, failure, 'timed_out');
    }
  }

  function entryFor({ wait, record, job, step }: StepPart): InboxRecord | undefined {
    if (wait?.for !== 'signal' && wait?.for !== 'approval' && wait?.for !== 'decision') return undefined;
    const name = wait.for === 'signal' ? wait.name : `${job.record.key}.${step.id}`;
    return state.inbox.find(
      (entry) => entry.kind === wait.for && entry.name === name && record.status === 'waiting',
    );
  }

  function useEntry(part: StepPart, entry: InboxRecord) {
    state.inbox = state.inbox.filter((other) => other !== entry);
    journal.take(entry.n, stepIdOf(part));
    const payload = JSON.parse(entry.payload);
    if (entry.kind === 'signal') {
      succeed(part, { payload, receivedAt: entry.at });
      return endAttempt(part, part.record.status, null);
    }
    if (entry.kind === 'decision' && payload.action === 'retry') return startEffect(part);
    const accepted = entry.kind === 'approval' ? payload.approved : payload.action === 'succeed';
    if (accepted) {
      succeed(part, entry.kind === 'approval' ? payload : payload.output);
      if (entry.kind === 'approval') endAttempt(part, 'succeeded', null);
      return;
    }
    const failure = new StepFailure('code', {
      code: 'STEP_FAILED',
      message:
        entry.kind === 'approval'
          ? 'The approval was refused.'
          : 'An operator declared the interrupted step failed.',
      details: { reason: entry.kind === 'approval' ? 'refused' : 'interrupted', ...payload },
    });
    if (entry.kind === 'approval') endAttempt(part, 'failed', failure);
    failStep(part, failure);
  }

  function settleChild(part: StepPart, child: RunRecord) {
    if (child.status === 'succeeded') {
      succeed(part, child.output === null ? null : JSON.parse(child.output));
      return endAttempt(part, part.record.status, null);
    }
    if (part.stopped) {
      endAttempt(part, part.stopped, null);
      return recorder.setStep(part, part.stopped);
    }
    if (part.wait?.timedOut) return failAttempt(part, childTimeout(part, child), 'timed_out');
    const failure = new StepFailure('code', {
      code: 'STEP_FAILED',
      message: `The workflow "${child.workflowId}" (run ${child.id}) ended as ${child.status}.`,
      details: { runId: child.id, status: child.status, error: child.error && JSON.parse(child.error) },
    });
    // A cancelled child is not retried: its cancellation was deliberate.
    if (child.status !== 'cancelled') return failAttempt(part, failure, 'failed');
    endAttempt(part, 'failed', failure);
    failStep(part, failure);
  }

  return { tryWake };
}

/** Failure of a step whose timeout passed before its child ended. */
function childTimeout({ step: { timeoutMs } }: StepPart, { id, workflowId, status }: RunRecord): StepFailure {
  return new StepFailure('timeout', {
    code: 'EXECUTION_TIMEOUT',
    message: `The step did not end within ${timeoutMs} ms; its child, the workflow "${workflowId}" (run ${id}), was cancelled.`,
    details: { timeoutMs, runId: id, status },
  });
}

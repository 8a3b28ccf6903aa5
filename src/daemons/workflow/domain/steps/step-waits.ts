import type { InboxRecord } from '../../../../store/ports/index.ts';
import { type StepPart, stepIdOf } from '../run/run-parts.ts';
import { StepFailure } from './retry-policy.ts';
import type { StepDriverDeps } from './step-driver.ts';

/** What a step does once its wait is over. */
export interface AfterWait {
  /** Its next attempt. */
  startEffect(part: StepPart): void;
  /** After an interruption: its next attempt, or the wait for a decision. */
  goOn(part: StepPart): void;
}

/** What ends the wait of a step: a time, a signal, an approval, a decision, a child, the return of its plugin. */
export function createStepWaits(
  deps: Pick<StepDriverDeps, 'journal' | 'recorder' | 'state' | 'deadlines' | 'logger' | 'childEnd'>,
  { startEffect, goOn }: AfterWait,
) {
  const { journal, recorder, state, deadlines } = deps;
  const { endAttempt, succeed, failStep } = recorder;

  /** Whether what a step waits for has come; then it has gone on. */
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
    if (wait?.for === 'child') return lookAtChild(part);
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

  function lookAtChild(part: StepPart) {
    if (state.draining || part.looking || !part.wait?.runId || !askChildren) return;
    part.looking = true;
    deps
      .childEnd(part.wait.runId)
      .then((child) => {
        part.looking = false;
        if (state.departure || !child || part.record.status !== 'waiting') return;
        const { runId } = part.wait!;
        if (child.status !== 'succeeded' && part.stopped) {
          endAttempt(part, part.stopped, null);
          recorder.setStep(part, part.stopped);
        } else if (child.status === 'succeeded') {
          succeed(part, child.output === null ? null : JSON.parse(child.output));
          endAttempt(part, part.record.status, null);
        } else {
          const failure = new StepFailure('code', {
            code: 'STEP_FAILED',
            message: `The workflow "${child.workflowId}" (run ${runId}) ended as ${child.status}.`,
            details: { runId, status: child.status, error: child.error && JSON.parse(child.error) },
          });
          endAttempt(part, 'failed', failure);
          failStep(part, failure);
        }
      })
      .catch((error: unknown) => {
        part.looking = false;
        deps.logger.error(`The end of child ${part.wait?.runId} could not be read`, { error });
      })
      .finally(() => {
        askChildren = false;
        if (!state.departure) state.advance();
        askChildren = true;
      });
  }
  /** False for the look after an answer: asking again at once would never end. */
  let askChildren = true;

  return { tryWake };
}

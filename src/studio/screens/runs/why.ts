import type { RunStep, StepWait, WorkflowRun } from '../../../contracts/workflow-records.ts';

const WAITING: Record<string, string> = {
  plugin: 'Waits for a plugin that is not loaded. See the plugins.',
  decision: 'A crash interrupted a step. Decide in the inbox whether it runs again.',
  approval: 'Waits for an approval. Decide in the inbox.',
  signal: 'Waits for a signal.',
  child: 'Waits for a run that it started.',
  retry: 'Waits for the next attempt of a failed step.',
  time: 'Waits for a time.',
};

/** Returns why a run does not go on, and what to do about it. Null for a run that is active or has ended. */
export function whyWaiting({ status, queuedReason, waitingReason, pauseScope }: WorkflowRun): string | null {
  if (pauseScope === 'run') return 'Paused. Steps in flight end; no further step begins until it is resumed.';
  if (pauseScope === 'workflow') return 'Its workflow is paused. Resume the workflow, or this run alone.';
  if (status === 'queued') return queuedReason ?? 'Waits for a free slot.';
  if (status === 'interrupted') return WAITING.decision!;
  if (status === 'waiting' || status === 'cancelling')
    return waitingReason === null ? null : (WAITING[waitingReason] ?? null);
  return null;
}

/** Returns why a job does not go on. Null for a job that is active or has ended. */
export function whyJobWaits(job: {
  status: string;
  queuedReason: string | null;
  waitingFor: StepWait | null;
}): string | null {
  if (job.status === 'queued') return job.queuedReason ?? 'Waits for a free slot.';
  return job.waitingFor && (WAITING[job.waitingFor.for] ?? null);
}

/** Returns what a step waits for, with names and times. Null for a step that does not wait. */
export function whyStepWaits({ status, waitingFor, wakeAt, attempts }: RunStep): string | null {
  if (status !== 'waiting' || !waitingFor) return null;
  const { for: reason, name, message, runId } = waitingFor;
  const until = wakeAt === null ? '' : ` until ${new Date(wakeAt).toLocaleString()}`;
  if (reason === 'signal') return `Waits for the signal "${name}"${until}.`;
  if (reason === 'approval') return `Waits for an approval${until}${message ? `: ${message}` : ''}`;
  if (reason === 'plugin') return `Waits for the plugin ${name}${message ? `: ${message}` : ''}`;
  if (reason === 'child') return `Waits for the run ${runId}, which it started.`;
  if (reason === 'retry') return `Attempt ${attempts} failed. Waits for the next one${until}.`;
  if (reason === 'time') return `Waits${until}.`;
  return WAITING[reason] ?? null;
}

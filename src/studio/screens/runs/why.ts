import type { WorkflowRun } from '../../../contracts/workflow-records.ts';

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
export function whyWaiting({ status, queuedReason, waitingReason }: WorkflowRun): string | null {
  if (status === 'queued') return queuedReason ?? 'Waits for a free slot.';
  if (status === 'interrupted') return WAITING.decision!;
  if (status === 'waiting' || status === 'cancelling')
    return waitingReason === null ? null : (WAITING[waitingReason] ?? null);
  return null;
}

import type { PlatformError } from '../../../../kit/errors/errors.ts';
import { NO_TENANT, redactJson } from '../../../../kit/telemetry/redact.ts';
import type { RunRecord, RunWrite } from '../../../../store/ports/index.ts';
import { move } from '../states.ts';

/**
 * Builds the write that ends a run whose definition no longer compiles. A cancelled or timed-out run keeps its end
 * status.
 */
export function failedByDefinition(
  run: RunRecord,
  { code, message, details }: PlatformError,
  now: number,
): { failed: RunRecord; write: RunWrite } {
  const error = redactJson({ code, message, details }, NO_TENANT);
  const status =
    run.status === 'cancelling'
      ? move('run', run.status, run.ending ?? 'cancelled', 'engine')
      : move('run', move('run', run.status, 'running', 'engine'), 'failed', 'engine');
  const failed: RunRecord = {
    ...run,
    status,
    fence: null,
    ready: false,
    reason: null,
    wakeAt: null,
    startedAt: run.startedAt ?? now,
    finishedAt: now,
    error: JSON.stringify(error),
  };
  return {
    failed,
    write: {
      seq: run.seq,
      expect: { fence: run.fence, status: run.status },
      run: failed,
      jobs: [],
      steps: [],
      attempts: [],
      events: [{ at: now, type: `run.${status}`, data: { reason: 'definition' } }],
      logs: [{ at: now, level: 'error', message: error.message }],
      taken: [],
      inboxSeen: 0,
      wakeParent: run.parentId,
      at: now,
    },
  };
}

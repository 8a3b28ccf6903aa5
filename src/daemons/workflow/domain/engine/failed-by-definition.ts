import type { PlatformError } from '../../../../kit/errors.ts';
import { redactJson } from '../../../../kit/redact.ts';
import type { RunRecord, RunWrite } from '../../../../store/ports/index.ts';
import { move } from '../states.ts';

/** What is written of a run whose definition cannot be compiled any more. */
export function failedByDefinition(
  run: RunRecord,
  { code, message, details }: PlatformError,
  now: number,
): { failed: RunRecord; write: RunWrite } {
  const error = redactJson({ code, message, details });
  const failed: RunRecord = {
    ...run,
    status: move('run', move('run', run.status, 'running', 'engine'), 'failed', 'engine'),
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
      expect: { fence: null, status: run.status },
      run: failed,
      jobs: [],
      steps: [],
      attempts: [],
      events: [{ at: now, type: 'run.failed', data: { reason: 'definition' } }],
      logs: [{ at: now, level: 'error', message: error.message }],
      taken: [],
      inboxSeen: 0,
      wakeParent: run.parentId,
      at: now,
    },
  };
}

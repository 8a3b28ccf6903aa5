import type { RunError, StepAnswer } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { messageOf } from '../failure.ts';
import { classOfThrown } from '../thrown-class.ts';

/** Error for a step that has failed after all retries. Workflow functions can catch this error and continue. */
export class WorkflowStepError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly step: string;
  readonly status: string;

  constructor(step: string, { status, error }: Extract<StepAnswer, { state: 'failed' }>) {
    super(error.message);
    this.name = 'WorkflowStepError';
    this.code = error.code;
    this.details = error.details;
    this.step = step;
    this.status = status;
  }
}

/** Failure of a step's function, as reported to the workflow run. The run decides whether to retry the step. */
export interface StepFault {
  error: RunError;
  errorClass?: string;
  retryAfterMs?: number;
}

/**
 * Converts a value thrown by a step's function to a StepFault. Reads `errorClass` and `retryAfterMs` from the error or
 * its `details`.
 */
export function faultOf(thrown: unknown): StepFault {
  const own = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Record<string, unknown>;
  const details = isRecord(own.details) ? own.details : {};
  const code = typeof own.code === 'string' ? own.code : undefined;
  return {
    error: { code: code ?? 'STEP_FAILED', message: messageOf(thrown), details: jsonOf(details) },
    ...classOfThrown(thrown),
  };
}

/**
 * Returns the details as JSON values. Returns an empty object for details that JSON cannot represent, so that the
 * failure is always reported.
 */
function jsonOf(details: Record<string, unknown>): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(details)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

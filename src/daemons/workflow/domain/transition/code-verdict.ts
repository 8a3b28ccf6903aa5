import type { ReplayEnd, RunError } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Verdict } from '../run/code-state.ts';
import type { JobState } from '../run/state.ts';
import type { Turn } from './turn.ts';

/**
 * Returns the outcome of a workflow function that returned normally. An output above the size limit becomes an error.
 */
export function outputOf(output: JsonValue, maxChars: number): Verdict {
  const chars = JSON.stringify(output).length;
  if (chars <= maxChars) return { output };
  const message = `The workflow's output takes ${chars} characters as JSON; the limit is ${maxChars}.`;
  return { error: { code: 'PAYLOAD_TOO_LARGE', message, details: { chars, limit: maxChars } } };
}

/**
 * Returns the error of a workflow function that threw. If a failed step caused the error, the message is the same as in
 * a workflow with listed steps.
 */
export function errorOf(
  turn: Turn,
  job: JobState,
  { error, step: stepId }: Extract<ReplayEnd, { end: 'threw' }>,
): RunError {
  const bad = stepId === undefined ? undefined : job.steps.find((step) => turn.step(step).id === stepId);
  if (!bad) return error;
  const how = bad.record.status === 'timed_out' ? 'timed out' : 'failed';
  return {
    code: 'STEP_FAILED',
    message: `The step "${stepId}" ${how}: ${bad.error?.message ?? error.message}`,
    details: { step: `${job.record.key}.${stepId}`, error: bad.error },
  };
}

export const WITHOUT_RESULT: RunError = {
  code: 'EXECUTION_ERROR',
  message: "The workflow's function ended without a result and without a step to wait for.",
  details: {},
};

import { CancelledError } from '../../../contracts/cancelled-error.ts';
import type { StepAnswer } from '../../../contracts/index.ts';
import { toCommandResult } from '../result.ts';
import type { Branch } from './branches.ts';
import { keptText } from './kept.ts';
import { faultOf, WorkflowStepError } from './step-failure.ts';

/** Runs a step's function and returns the outcome in the form that the workflow run expects. */
export async function outcomeOf(id: string, run: () => unknown): Promise<unknown> {
  try {
    const { exitCode, result, error } = toCommandResult(await run());
    if (exitCode === 0) return { output: JSON.parse(keptText(result, `What the step "${id}" returned`)) };
    const { code, message, details } = error ?? { message: `The step ended with exit code ${exitCode}.` };
    return faultOf(Object.assign(new Error(message), { code, details }));
  } catch (thrown) {
    return faultOf(thrown);
  }
}

/**
 * Converts a failed step to the error that its branch receives. After a cancellation, later steps of the branch are
 * part of the clean-up.
 */
export function failureOf(
  branch: Branch,
  id: string,
  answer: Extract<StepAnswer, { state: 'failed' }>,
): Error {
  if (answer.status !== 'cancelled') return new WorkflowStepError(id, answer);
  branch.isCancelled = true;
  const reason = answer.error.details.reason === 'timed_out' ? 'timed_out' : 'cancelled';
  return new CancelledError(answer.error.message, { reason, step: id });
}

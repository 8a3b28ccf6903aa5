import type { ReplayEnd, RunError } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { type JobPart, stepIdOf } from '../run/run-parts.ts';
import { Interrupted } from '../steps/interrupted.ts';
import { StepFailure } from '../steps/retry-policy.ts';
import type { CodePass } from './code-pass.ts';

/** Result of a replay that did not break off. */
export type Came = Exclude<ReplayEnd, { end: 'broke' }>;
/** Outcome of the function and its job. `isCancel`: the function rethrew its cancellation. */
export type Verdict = { output: JsonValue } | { error: RunError; isCancel?: true | undefined };

/** Returns the outcome of a function that returned; too large an output becomes an error. */
export function outputOf(output: JsonValue, mostOutput: number): Verdict {
  const chars = JSON.stringify(output).length;
  if (chars <= mostOutput) return { output };
  const message = `The workflow's output takes ${chars} characters as JSON; a run may hand on ${mostOutput}.`;
  return { error: { code: 'PAYLOAD_TOO_LARGE', message, details: { chars, limit: mostOutput } } };
}

/** Uses the same message as a failed step of a definition. */
export function errorOf(job: JobPart, { error, step: id }: Extract<ReplayEnd, { end: 'threw' }>): RunError {
  const bad = id === undefined ? undefined : job.steps.find(({ step }) => step.id === id);
  if (!bad) return error;
  const how = bad.record.status === 'timed_out' ? 'timed out' : 'failed';
  return {
    code: 'STEP_FAILED',
    message: `The step "${bad.step.id}" ${how}: ${bad.error?.message ?? error.message}`,
    details: { step: stepIdOf(bad), error: bad.error },
  };
}

/**
 * Error for the steps in flight when a replay broke off. Among several steps, or beside one that timed out, the culprit
 * is unknown, so they count as interrupted.
 */
export function failureInAir({ signal, flights }: CodePass, ended: StepFailure): StepFailure {
  const isBlameless = signal.aborted || (ended.errorClass === 'code' && flights > 1);
  return isBlameless ? new Interrupted(ended.message, ended.error.details) : ended;
}

/** Retryable failure: the function lost the connection to its run. */
export function brokenPass(message: string): StepFailure {
  return new StepFailure('network', { code: 'UPSTREAM_UNAVAILABLE', message, details: {} });
}

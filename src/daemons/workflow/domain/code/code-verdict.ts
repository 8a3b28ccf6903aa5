import type { ReplayEnd, RunError } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { type JobPart, stepIdOf } from '../run/run-parts.ts';
import { Interrupted } from '../steps/interrupted.ts';
import { StepFailure } from '../steps/retry-policy.ts';
import type { CodePass } from './code-pass.ts';

/** A pass that came as far as it could. */
export type Came = Exclude<ReplayEnd, { end: 'broke' }>;
/** How the function ended, with its job. `isCancel`: it passed on that it was cancelled. */
export type Verdict = { output: JsonValue } | { error: RunError; isCancel?: true | undefined };

/** A function that returned. */
export function outputOf(output: JsonValue, mostOutput: number): Verdict {
  const chars = JSON.stringify(output).length;
  if (chars <= mostOutput) return { output };
  const message = `The workflow's output takes ${chars} characters as JSON; a run may hand on ${mostOutput}.`;
  return { error: { code: 'PAYLOAD_TOO_LARGE', message, details: { chars, limit: mostOutput } } };
}

/** The same words as for a failed step of a definition. */
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

/** What became of steps in flight as their pass broke off: of several, or beside one that overran its time, none need be at fault. */
export function failureInAir({ signal, flights }: CodePass, ended: StepFailure): StepFailure {
  const isBlameless = signal.aborted || (ended.errorClass === 'code' && flights > 1);
  return isBlameless ? new Interrupted(ended.message, ended.error.details) : ended;
}

/** The function could not reach its run: a matter of time, as for any call between machines. */
export function brokenPass(message: string): StepFailure {
  return new StepFailure('network', { code: 'UPSTREAM_UNAVAILABLE', message, details: {} });
}

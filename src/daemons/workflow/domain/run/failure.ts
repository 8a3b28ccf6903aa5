import type { ErrorClass, RunError } from '../../../../contracts/index.ts';
import { messageOf } from '../../../../kit/errors/errors.ts';
import { TemplateError } from '../definition/templates.ts';
import { Interrupted } from '../steps/interrupted.ts';
import { StepFailure } from '../steps/retry-policy.ts';

/** Plugin that was unavailable when an attempt called the plugin. */
export interface AwayPlugin {
  pluginId: string;
  /** Delay until the next attempt, in ms. A plugin reload ends the delay early. */
  pauseMs: number;
  /** Whether the plugin or the handler is not loaded. False if the plugin is loaded but fails to start. */
  isMissing: boolean;
}

/** A `StepFailure` as plain data, which can be cloned and stored. */
export interface Failure {
  errorClass: ErrorClass;
  error: RunError;
  retryAfterMs: number | null;
  /** Whether the process that performed the work ended unexpectedly. */
  interrupted?: true;
  /** Plugin that was unavailable, so that the work never began. */
  away?: AwayPlugin;
}

export function failureOf(failure: StepFailure): Failure {
  const { errorClass, error, retryAfterMs } = failure;
  return {
    errorClass,
    error,
    retryAfterMs,
    ...(failure instanceof Interrupted ? { interrupted: true } : {}),
  };
}

/** Converts an error of an expression to a failure. Also converts errors of values that a step rejects. */
export function evaluationFailure(error: unknown): Failure {
  if (error instanceof StepFailure) return failureOf(error);
  const isLimit = error instanceof TemplateError && error.isLimit;
  const code = isLimit ? 'EXPRESSION_LIMIT_EXCEEDED' : 'VALIDATION_ERROR';
  return failureOf(new StepFailure('validation', { code, message: messageOf(error), details: {} }));
}

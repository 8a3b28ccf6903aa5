import type { ErrorClass, RunError } from '../../../../contracts/index.ts';
import { messageOf } from '../../../../kit/errors/errors.ts';
import { TemplateError } from '../definition/templates.ts';
import { Interrupted } from '../steps/interrupted.ts';
import { StepFailure } from '../steps/retry-policy.ts';

/** A plugin that was unavailable when an attempt called the plugin. */
export interface AwayPlugin {
  pluginId: string;
  /** Backoff until the next attempt without a reload, in ms. */
  pauseMs: number;
  /** True if no such plugin or handler is loaded, false if it is loaded but fails to start. */
  isMissing: boolean;
}

/** A StepFailure as plain data, which can be cloned and stored. */
export interface Failure {
  errorClass: ErrorClass;
  error: RunError;
  retryAfterMs: number | null;
  /** Set when the process that performed the work was lost. */
  interrupted?: true;
  /** Set when the plugin was unavailable, so that the work never began. */
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

/** Converts an error of an expression, or of a value that a step cannot accept, to a failure. */
export function evaluationFailure(error: unknown): Failure {
  if (error instanceof StepFailure) return failureOf(error);
  const isLimit = error instanceof TemplateError && error.isLimit;
  const code = isLimit ? 'EXPRESSION_LIMIT_EXCEEDED' : 'VALIDATION_ERROR';
  return failureOf(new StepFailure('validation', { code, message: messageOf(error), details: {} }));
}

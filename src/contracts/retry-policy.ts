import { z } from 'zod';
import { durationFields, foldDurations } from './duration.ts';
import { ERROR_CLASSES } from './error-classes.ts';
import { Ms } from './workflow-fields.ts';

export const ErrorClass = z.enum(ERROR_CLASSES);
export type ErrorClass = z.infer<typeof ErrorClass>;
export const TRANSIENT_CLASSES: readonly ErrorClass[] = ['network', 'timeout', 'rate_limit', 'server'];

const INITIAL_MS = 1000;
const MAX_MS = 60_000;
const backoff = {
  maxAttempts: z.number().int().min(1).max(100),
  initialMs: Ms.optional(),
  factor: z.number().min(1).max(100),
  maxMs: Ms.optional(),
};

const Policy = z
  .strictObject({
    maxAttempts: backoff.maxAttempts.default(3),
    // Defaults follow the fold, which must see whether the field was given.
    initialMs: backoff.initialMs.meta({ default: INITIAL_MS }),
    factor: backoff.factor.default(2),
    maxMs: backoff.maxMs.meta({ default: MAX_MS }),
    jitter: z.enum(['full', 'none']).default('full'),
    deadlineMs: Ms.optional(),
    ...durationFields('initialMs', 'maxMs', 'deadlineMs'),
    on: z.array(ErrorClass).optional(),
    classes: z
      .partialRecord(
        ErrorClass,
        z
          .strictObject({
            maxAttempts: backoff.maxAttempts.optional(),
            initialMs: backoff.initialMs,
            factor: backoff.factor.optional(),
            maxMs: backoff.maxMs,
            ...durationFields('initialMs', 'maxMs'),
          })
          .transform(foldDurations('initialMs', 'maxMs')),
      )
      .default({}),
  })
  .transform(foldDurations('initialMs', 'maxMs', 'deadlineMs'))
  .transform(({ initialMs = INITIAL_MS, maxMs = MAX_MS, ...policy }) => ({ ...policy, initialMs, maxMs }));
export interface RetryPolicy extends z.infer<typeof Policy> {}
export interface PolicyInput extends z.input<typeof Policy> {}
/**
 * Retries failures whose class is in `on`, by default the classes in docs/workflows.md. The delay before attempt n+1 is
 * `initialMs * factor^(n-1)`, at most `maxMs`. With `full` jitter, the delay is a random part of this value. A longer
 * `Retry-After` takes precedence. No attempt starts later than `deadlineMs` after the first attempt.
 */
export const RetryPolicy: z.ZodType<RetryPolicy, PolicyInput> = Policy;

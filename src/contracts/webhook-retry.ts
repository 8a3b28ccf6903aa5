import { z } from 'zod';

const PositiveInt = z.number().int().positive();

/**
 * Exponential backoff. The delay starts at `initialMs` and is multiplied by `factor` after each attempt, up to `maxMs`.
 * Each delay is randomly shortened by up to 20 %.
 */
export const WebhookRetry = z.strictObject({
  /** Maximum number of executions, including the first execution. */
  maxAttempts: PositiveInt.min(2).max(100),
  backoff: z
    .strictObject({
      initialMs: PositiveInt.default(1000),
      factor: z.number().min(1).max(10).default(2),
      maxMs: PositiveInt.max(24 * 3600_000).default(3600_000),
    })
    .prefault({}),
});
export type WebhookRetry = z.infer<typeof WebhookRetry>;

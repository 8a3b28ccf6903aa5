import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/** Fence token of the gateway that schedules the accepted deliveries of all nodes. */
const Scheduler = z.number().int().positive();

/**
 * Runs one attempt of an accepted delivery. The gateway that schedules the deliveries sends this request to another
 * gateway. @spec docs/decisions/0222
 */
export const runDeliveryAttempt = endpoint({
  method: 'POST',
  path: '/internal/deliveries/attempts',
  summary: 'Run one attempt of an accepted delivery',
  body: z.object({
    scheduler: Scheduler,
    webhookId: z.uuid(),
    attempts: z
      .number()
      .int()
      .nonnegative()
      .describe('Attempts so far; another number in the store means no run'),
  }),
  reply: z.object({
    isRefused: z.boolean().describe('True if this gateway did not run the attempt'),
    isUnread: z.boolean().describe('True if the delivery could not be read, so that it must be tried again'),
    nextAttemptAt: z.number().nullable(),
  }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN'],
});

/**
 * Announces a new scheduler. The reply lists running attempts that an earlier scheduler started. The new scheduler must
 * not start these attempts again.
 */
export const announceScheduler = endpoint({
  method: 'POST',
  path: '/internal/deliveries/scheduler',
  summary: 'Announce the gateway that schedules deliveries, and list running attempts',
  body: z.object({ scheduler: Scheduler }),
  reply: z.object({ running: z.array(z.uuid()) }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN'],
});

/** Notifies the gateway that schedules deliveries of new deliveries that another gateway has accepted. */
export const noticeDeliveries = endpoint({
  method: 'POST',
  path: '/internal/deliveries/notice',
  summary: 'Load newly accepted deliveries without waiting for the next poll',
  reply: z.object({ noticed: z.literal(true) }),
  errors: ['FORBIDDEN'],
});

import { z } from 'zod';

/** Name of a queue. The name is one URL segment, and part of the scope `queue:<name>`. */
export const QueueName = z
  .string()
  .max(128)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:@-]*$/,
    'must start with a letter or digit and contain only letters, digits and . _ : @ -',
  );

export const MAX_LEASE_MS = 12 * 3600_000;
const LeaseMs = z.number().int().min(1000).max(MAX_LEASE_MS);

const settings = {
  maxAttempts: z.number().int().min(1).max(1000).describe('Leases after which a failed item becomes dead'),
  concurrency: z
    .number()
    .int()
    .min(1)
    .max(10_000)
    .nullable()
    .describe('Maximum number of leased items; null: no limit'),
  leaseMs: LeaseMs.describe('Duration of a lease for which the program names none'),
  maxLeaseMs: LeaseMs.describe('Longest lease, and longest extension from now'),
  order: z
    .enum(['key', 'queue', 'none'])
    .describe('One item at a time and in order: of each order key, of the whole queue, or not at all'),
};

/** Settings of a queue. Settings of `svc.config.json` win over those set by API. */
export const QueueSettings = z.object(settings).meta({ id: 'QueueSettings' });
export type QueueSettings = z.infer<typeof QueueSettings>;

/** The settings that are set. The others have their defaults. */
export const QueueSettingsInput = z.strictObject(settings).partial();
export type QueueSettingsInput = z.infer<typeof QueueSettingsInput>;

export const QUEUE_DEFAULTS: QueueSettings = {
  maxAttempts: 10,
  concurrency: null,
  leaseMs: 30_000,
  maxLeaseMs: 3600_000,
  order: 'key',
};

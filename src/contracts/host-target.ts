import { z } from 'zod';

/** Which of the namespace's hosts may run an execution; each field given narrows the choice. */
export const HostTarget = z.strictObject({
  hostId: z.string().min(1).max(256).optional(),
  /** All of these, with these values. */
  labels: z.record(z.string().max(256), z.string().max(256)).optional(),
  capability: z.string().min(1).max(64).optional(),
});
export type HostTarget = z.infer<typeof HostTarget>;

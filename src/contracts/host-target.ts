import { z } from 'zod';

/** Criteria that select hosts within a namespace. A host must match all given fields. */
export const HostTarget = z.strictObject({
  hostId: z.string().min(1).max(256).optional(),
  /** Labels and values that the host must have. */
  labels: z.record(z.string().max(256), z.string().max(256)).optional(),
  capability: z.string().min(1).max(64).optional(),
});
export type HostTarget = z.infer<typeof HostTarget>;

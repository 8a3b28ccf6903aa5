import { z } from 'zod';

/** Answer of the person at a client. @spec Elicitation: Response actions */
export const Elicited = z.object({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.json()).optional(),
});

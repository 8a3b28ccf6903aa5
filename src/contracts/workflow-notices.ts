import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/**
 * Lets the workflow service that executes a run read the signals and cancel requests that another one has stored.
 * @spec docs/decisions/0224
 */
export const readRunNotices = endpoint({
  method: 'POST',
  path: '/internal/workflows/notices',
  summary: 'Read stored signals and cancel requests for runs of this process',
  body: z.object({ fence: z.number().int().positive() }),
  reply: z.object({ isRead: z.boolean().describe('False if the fence is that of another process') }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED'],
});

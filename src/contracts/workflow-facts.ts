import { z } from 'zod';
import { endpoint } from './endpoint.ts';

const limit = z.number().int().min(1).max(1000);
const errors = ['VALIDATION_ERROR', 'UNAUTHORIZED'] as const;

/** Returns facts about failed runs and missed schedules above a number, and deletes those up to it. @spec docs/alerts.md */
export const readRunFacts = endpoint({
  method: 'POST',
  path: '/internal/workflows/facts',
  summary: 'Read facts about failed runs and missed schedules',
  body: z.object({ after: z.number().int().min(0), limit }),
  reply: z.object({
    facts: z.array(
      z.object({
        seq: z.number().int(),
        kind: z.string(),
        namespaceId: z.string().nullable(),
        objectId: z.string(),
        body: z.string(),
        at: z.number(),
        origins: z.array(z.string()).default([]).describe('Runs that the object repeats'),
      }),
    ),
  }),
  errors,
});

export const readWaitingApprovals = endpoint({
  method: 'POST',
  path: '/internal/workflows/approvals',
  summary: 'Read runs that wait for an approval since a time',
  body: z.object({ before: z.number().int(), limit, tenantId: z.string().optional() }),
  reply: z.object({
    approvals: z.array(
      z.object({
        tenantId: z.string(),
        runId: z.string(),
        workflowId: z.string(),
        since: z.number().describe('Epoch milliseconds'),
      }),
    ),
  }),
  errors,
});

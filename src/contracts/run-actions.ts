import { z } from 'zod';
import { bulkFields, matching, NextBulkCursor } from './bulk.ts';
import { endpoint } from './endpoint.ts';
import { AnyJson } from './workflow-fields.ts';
import { PartStatus, RunError, RunId, RunStatus, WorkflowRun } from './workflow-records.ts';
import { listRuns } from './workflows.ts';

const tags = ['workflows'];
const PreviewedStep = z.object({
  id: z.string(),
  status: PartStatus.describe('Status of the step in the original run'),
});

/** Says what a rerun would do. Refuses with the same errors as the rerun, except those of limits. */
export const previewRerun = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/rerun/preview',
  summary: 'Show which steps a rerun reuses and which run again',
  tags,
  params: z.object({ runId: RunId }),
  body: z.strictObject({ fromStep: z.string().max(256).optional(), input: AnyJson.optional() }).default({}),
  reply: z.object({
    reused: z.array(PreviewedStep).describe('Steps whose recorded results are reused'),
    repeated: z.array(PreviewedStep).describe('Known steps that run again'),
    input: AnyJson.describe('Input of the new run'),
    notes: z.array(z.string()).describe('What the lists of steps cannot show'),
  }),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'VALIDATION_ERROR', 'CONFLICT'],
});

/** A run in a bulk action. */
export const BulkRun = WorkflowRun.pick({ id: true, workflowId: true, status: true, createdAt: true });
export type BulkRun = z.infer<typeof BulkRun>;

const bulkBody = z
  .strictObject({
    filter: listRuns.query!.omit({ cursor: true, limit: true }).optional().describe('As of the list of runs'),
    runIds: z.array(RunId).min(1).max(1000).optional().describe('Instead of a filter'),
    limit: z.number().int().min(1).max(500).default(100).describe('Runs to act on in this call'),
    ...bulkFields,
  })
  .refine(({ filter, runIds }) => (filter === undefined) !== (runIds === undefined), {
    message: 'set either "filter" (an empty one matches all runs) or "runIds"',
  });

const bulkReply = {
  matching: matching(BulkRun),
  refused: z.array(z.object({ runId: z.string(), error: RunError })),
  nextCursor: NextBulkCursor,
};

/** Cancels many runs, newest first. Runs that have ended do not match. */
export const cancelRuns = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/cancel',
  summary: 'Cancel many runs',
  tags,
  body: bulkBody,
  reply: z.object({ items: z.array(z.object({ runId: z.string(), status: RunStatus })), ...bulkReply }),
  errors: ['VALIDATION_ERROR'],
});

/** Runs many ended runs again, newest first. Unfinished runs and child runs do not match. */
export const rerunRuns = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/rerun',
  summary: 'Run many ended runs again',
  tags,
  status: 202,
  body: bulkBody,
  reply: z.object({
    items: z.array(z.object({ runId: z.string(), rerunOf: z.string() })),
    ...bulkReply,
    paused: RunError.nullable().describe('The limit that stopped this call. Wait, then call again'),
  }),
  errors: ['VALIDATION_ERROR'],
});

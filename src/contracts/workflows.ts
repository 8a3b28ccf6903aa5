import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';

export const RunId = z.string().min(1).max(128).brand('RunId');
export type RunId = z.infer<typeof RunId>;

/** @spec Workflow run; docs/decisions.md "Run states" */
export const RunStatus = z.enum([
  'queued',
  'running',
  'waiting',
  'interrupted',
  'cancelling',
  'succeeded',
  'failed',
  'timed_out',
  'cancelled',
]);
export type RunStatus = z.infer<typeof RunStatus>;

const EpochMs = z.number().describe('Epoch milliseconds');

/** One execution of a workflow definition. */
export const WorkflowRun = z
  .object({
    id: RunId,
    workflowId: z.string(),
    status: RunStatus,
    queuedReason: z.string().nullable().describe('Why a queued run does not run yet'),
    input: z.json(),
    output: z.json().nullable(),
    error: z
      .object({ code: z.string(), message: z.string(), details: z.record(z.string(), z.unknown()) })
      .nullable(),
    resumeCount: z.number().int().describe('How often the run was taken up again after an interruption'),
    createdAt: EpochMs,
    startedAt: EpochMs.nullable(),
    finishedAt: EpochMs.nullable(),
  })
  .meta({ id: 'WorkflowRun' });
export type WorkflowRun = z.infer<typeof WorkflowRun>;

/** One step of a run, over all its attempts. */
export const RunStep = z
  .object({
    id: z.string(),
    jobId: z.string(),
    uses: z.string(),
    status: z.enum(['pending', 'skipped', ...RunStatus.options]),
    attempts: z.number().int(),
    output: z.json().nullable(),
    error: WorkflowRun.shape.error,
    startedAt: EpochMs.nullable(),
    finishedAt: EpochMs.nullable(),
  })
  .meta({ id: 'RunStep' });
export type RunStep = z.infer<typeof RunStep>;

export const RunLogLine = z
  .object({
    time: EpochMs,
    level: z.string(),
    message: z.string(),
    jobId: z.string().nullable(),
    stepId: z.string().nullable(),
  })
  .meta({ id: 'RunLogLine' });

const tags = ['workflows'];
const params = z.object({ runId: RunId });
const Limit = z.coerce.number().int().min(1).max(1000).default(50);
const Cursor = z.string().max(1024).optional();

/** Starts a run of a registered workflow, or of a definition sent along. */
export const startRun = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs',
  summary: 'Start a workflow run',
  tags,
  status: 202,
  body: z
    .strictObject({
      workflowId: z.string().min(1).max(256).optional(),
      definition: z.record(z.string(), z.json()).optional(),
      input: z.json().default({}),
      idempotencyKey: z.string().min(1).max(256).optional(),
      priority: z.number().int().min(-100).max(100).default(0),
      runAt: EpochMs.optional(),
    })
    .refine((body) => (body.workflowId === undefined) !== (body.definition === undefined), {
      message: 'give either "workflowId" or "definition"',
    }),
  reply: z.object({ run: WorkflowRun }),
  errors: [
    'VALIDATION_ERROR',
    'WORKFLOW_NOT_FOUND',
    'CONFLICT',
    'QUOTA_EXCEEDED',
    'CONCURRENT_LIMIT_EXCEEDED',
  ],
});

export const listRuns = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs',
  summary: 'List workflow runs, newest first',
  tags,
  query: z.object({
    status: RunStatus.optional(),
    workflowId: z.string().max(256).optional(),
    cursor: Cursor,
    limit: Limit,
  }),
  reply: page(WorkflowRun),
});

export const getRun = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId',
  summary: 'Status of a run',
  tags,
  params,
  reply: WorkflowRun,
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

const cancelReply = z.object({ cancelled: z.boolean(), status: RunStatus });
const cancelErrors = ['WORKFLOW_RUN_NOT_FOUND', 'WORKFLOW_ALREADY_CANCELLED'] as const;

/** A run that has finished otherwise keeps its status: `cancelled` is false then. */
export const cancelRun = endpoint({
  method: 'DELETE',
  path: '/api/v1/workflows/runs/:runId',
  summary: 'Cancel a run',
  tags,
  params,
  reply: cancelReply,
  errors: cancelErrors,
});

export const listRunLogs = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/logs',
  summary: 'Log lines of a run, oldest first',
  tags,
  params,
  query: z.object({ cursor: Cursor, limit: Limit }),
  reply: page(RunLogLine),
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

export const listRunSteps = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/steps',
  summary: 'Steps of a run',
  tags,
  params,
  reply: page(RunStep),
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

/** The cancel of the workflow daemon, on the path that the spec gives without the prefix. @spec Workflow daemon */
export const postCancelRun = endpoint({
  method: 'POST',
  path: '/workflows/runs/:runId/cancel',
  summary: 'Cancel a run',
  tags,
  params,
  reply: cancelReply,
  errors: ['UNAUTHORIZED', ...cancelErrors],
});

/** The same under the prefix of everything else. @spec docs/decisions.md "Cancel path" */
export const postCancelRunPrefixed = endpoint({
  ...postCancelRun,
  path: '/api/v1/workflows/runs/:runId/cancel',
});

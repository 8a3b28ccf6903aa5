import { z } from 'zod';
import { Moment, NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { countsQuery, QueryTime, RunCounts } from './hour-counts.ts';
import { McpExposure } from './mcp-exposure.ts';
import { LabelFilters, RunLabels } from './run-labels.ts';
import { AnyJson, WorkflowId } from './workflow-fields.ts';
import {
  RunChild,
  RunEvent,
  RunHandler,
  RunId,
  RunJob,
  RunLogLine,
  RunStatus,
  RunStatusFilter,
  RunStep,
  WaitReason,
  WorkflowRun,
} from './workflow-records.ts';

const tags = ['workflows'];
const params = z.object({ runId: RunId });
const Limit = z.coerce.number().int().min(1).max(1000).default(50);
const Cursor = z.string().max(1024).optional();
const MAX_SEARCH_CHARS = 200;

const startOptions = {
  input: AnyJson.default({}),
  idempotencyKey: z.string().min(1).max(256).optional(),
  priority: z.number().int().min(-100).max(100).default(0),
  runAt: Moment.optional(),
};

/**
 * Starts a run of a registered or inline definition. The `Idempotency-Key` header is equivalent to the `idempotencyKey`
 * field.
 */
export const startRun = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs',
  summary: 'Start a workflow run',
  tags,
  status: 202,
  body: z
    .strictObject({
      workflowId: z.string().min(1).max(256).optional(),
      definition: z.record(z.string(), AnyJson).optional(),
      labels: RunLabels.optional(),
      ...startOptions,
    })
    .refine((body) => (body.workflowId === undefined) !== (body.definition === undefined), {
      message: 'set either "workflowId" or "definition"',
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
  query: z.strictObject({
    status: RunStatusFilter.optional(),
    waitingReason: WaitReason.optional().describe('Only runs and clean-ups that wait for this'),
    paused: z
      .literal(['true', true])
      .transform(() => true as const)
      .optional()
      .describe('Only paused runs, and runs that wait because their workflow is paused'),
    workflowId: z.string().max(256).optional(),
    label: LabelFilters.optional(),
    from: QueryTime.optional().describe('Only runs created at this time or later'),
    to: QueryTime.optional().describe('Only runs created before this time'),
    search: z
      .string()
      .min(1)
      .max(MAX_SEARCH_CHARS)
      .optional()
      .describe('Text in the input, or the id of a run. A page can be short although `nextCursor` is set'),
    cursor: Cursor,
    limit: Limit,
  }),
  reply: page(WorkflowRun),
});

export const countRuns = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/counts',
  summary: 'Count workflow runs per hour, by the time of their creation',
  tags,
  query: countsQuery,
  reply: RunCounts,
  errors: ['VALIDATION_ERROR'],
});

export const getRun = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId',
  summary: 'Show a run with its jobs',
  tags,
  params,
  reply: WorkflowRun.extend({
    jobs: z.array(RunJob),
    children: z.array(RunChild).describe('Child runs, at most 300'),
    handlers: z.array(RunHandler).optional().describe('Runs that its end started'),
  }),
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

const cancelReply = z.object({ cancelled: z.boolean(), status: RunStatus });
const cancelErrors = ['WORKFLOW_RUN_NOT_FOUND', 'WORKFLOW_ALREADY_CANCELLED'] as const;

/** Cancels a run. If the run has already finished, the status does not change and `cancelled` is false. */
export const cancelRun = endpoint({
  method: 'DELETE',
  path: '/api/v1/workflows/runs/:runId',
  summary: 'Cancel a run',
  tags,
  params,
  reply: cancelReply,
  errors: cancelErrors,
});

const logQuery = {
  cursor: Cursor,
  limit: Limit,
  stepId: z
    .string()
    .max(256)
    .optional()
    .describe('Only lines of this step; a page can then be short or empty'),
  order: z
    .enum(['asc', 'desc'])
    .default('asc')
    .describe('desc: newest first. A stream is always oldest first'),
};

/**
 * Lists log lines of a run. With `Accept: text/event-stream`, the log lines are streamed, and `Last-Event-ID` or
 * `cursor` resumes the stream.
 */
export const listRunLogs = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/logs',
  summary: 'Log lines of a run, oldest first or newest first; live as server-sent events',
  tags,
  params,
  query: z.strictObject(logQuery),
  reply: page(RunLogLine),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

/** Lists events of a run. With `Accept: text/event-stream`, the events are streamed until the run ends. */
export const listRunEvents = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/events',
  summary: 'Events of a run, oldest first; live as server-sent events',
  tags,
  params,
  query: z.strictObject({ cursor: Cursor, limit: Limit }),
  reply: page(RunEvent),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'],
});

export const listRunSteps = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/steps',
  summary: 'List the steps of a run with their attempts',
  tags,
  params,
  query: NoFilters,
  reply: page(RunStep),
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

/**
 * Cancels a run. The spec requires this path, which lacks the `/api/v1` prefix of the other endpoints. @spec Workflow
 * daemon
 */
export const postCancelRun = endpoint({
  method: 'POST',
  path: '/workflows/runs/:runId/cancel',
  summary: 'Cancel a run',
  tags,
  params,
  reply: cancelReply,
  errors: ['UNAUTHORIZED', ...cancelErrors],
});

/** Cancels a run, on a path with the `/api/v1` prefix of the other workflow endpoints. */
export const postCancelRunPrefixed = endpoint({
  ...postCancelRun,
  path: '/api/v1/workflows/runs/:runId/cancel',
});

/**
 * Starts a new run with the same definition. With `fromStep` (`<job>.<step>`), earlier successful results are reused.
 * With `input`, only the results that this step depends on are reused.
 */
export const rerunRun = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/rerun',
  summary: 'Run again, from the start or from a step',
  tags,
  status: 202,
  params,
  body: z
    .strictObject({
      fromStep: z.string().max(256).optional(),
      input: AnyJson.optional().describe('Input of the new run; default: that of the original run'),
    })
    .default({}),
  reply: z.object({ run: WorkflowRun }),
  errors: [
    'WORKFLOW_RUN_NOT_FOUND',
    'VALIDATION_ERROR',
    'CONFLICT',
    'QUOTA_EXCEEDED',
    'CONCURRENT_LIMIT_EXCEEDED',
  ],
});

/** The secrets that a definition names, and the approval of its present text in the namespace. */
export const SecretApproval = z.object({
  names: z.array(z.string()),
  approved: z.boolean(),
  approvedBy: z.string().nullable(),
  approvedAt: z.number().nullable(),
});
export type SecretApproval = z.infer<typeof SecretApproval>;

/** A registered workflow definition. */
export const WorkflowSummary = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    description: z.string().nullable(),
    version: z.string(),
    hash: z.string(),
    source: z.string().describe('File or plugin of the definition'),
    jobs: z.array(z.string()),
    inputs: z.record(z.string(), AnyJson).nullable(),
    mcp: McpExposure.nullable().describe('How agents see the workflow as a tool'),
    paused: z.boolean().optional().describe('Whether its runs wait in the queue of the namespace'),
    secrets: SecretApproval.optional().describe('Absent for workflows without secrets'),
  })
  .meta({ id: 'WorkflowSummary' });
export type WorkflowSummary = z.infer<typeof WorkflowSummary>;

/** A problem in a definition. The problem prevents the registration of the workflow unless `unresolved` is set. */
export const WorkflowFault = z
  .object({
    source: z.string().describe('The file with line and column (`ship.yaml:12:5`), or the plugin'),
    path: z.string().describe('Path in the definition; empty for the whole file'),
    message: z.string(),
    text: z.string().optional().describe('The line of the file'),
    unresolved: z
      .literal(true)
      .optional()
      .describe('The workflow is registered, but references a missing plugin, command or webhook'),
  })
  .meta({ id: 'WorkflowFault' });
export type WorkflowFault = z.infer<typeof WorkflowFault>;

export const listWorkflows = endpoint({
  method: 'GET',
  path: '/api/v1/workflows',
  summary: 'List registered workflows, and the faults of invalid ones',
  tags,
  query: NoFilters,
  reply: page(WorkflowSummary).extend({
    faults: z.array(WorkflowFault),
    pausedUnregistered: z
      .array(z.string())
      .optional()
      .describe('Ids of paused workflows that are not registered'),
  }),
});

export const approveWorkflowSecrets = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/:workflowId/approve-secrets',
  summary: 'Allow a registered definition to use the secrets that it names, in the namespace',
  tags,
  params: z.object({ workflowId: WorkflowId }),
  body: z.strictObject({
    hash: z.string().min(1).max(256).describe('Hash of the definition that was reviewed'),
  }),
  reply: SecretApproval,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'WORKFLOW_NOT_FOUND', 'CONFLICT'],
});

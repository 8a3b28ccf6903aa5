import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { AnyJson, ErrorClass } from './workflow-definition.ts';

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

/** Of a job, and of a step. @spec docs/workflow-states.md */
export const PartStatus = z.enum([
  'pending',
  'running',
  'waiting',
  'interrupted',
  'succeeded',
  'failed',
  'timed_out',
  'cancelled',
  'skipped',
]);
export type PartStatus = z.infer<typeof PartStatus>;

const EpochMs = z.number().describe('Epoch milliseconds');

export const RunError = z.object({
  code: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.unknown()),
});
export type RunError = z.infer<typeof RunError>;

/** What started a run. */
export const RunTrigger = z.enum(['manual', 'schedule', 'child', 'rerun', 'job']);
export type RunTrigger = z.infer<typeof RunTrigger>;

/** One execution of a workflow definition. */
export const WorkflowRun = z
  .object({
    id: RunId,
    workflowId: z.string(),
    definitionHash: z.string().describe('SHA-256 of the definition that this run keeps to'),
    status: RunStatus,
    queuedReason: z.string().nullable().describe('Why a queued run does not run yet'),
    trigger: RunTrigger,
    parentRunId: z.string().nullable(),
    rerunOf: z.string().nullable(),
    priority: z.number().int(),
    input: AnyJson,
    output: AnyJson.nullable(),
    error: RunError.nullable(),
    resumeCount: z.number().int().describe('How often the run was taken up again after an interruption'),
    createdAt: EpochMs,
    runAt: EpochMs.nullable().describe('Not started before'),
    startedAt: EpochMs.nullable(),
    finishedAt: EpochMs.nullable(),
  })
  .meta({ id: 'WorkflowRun' });
export type WorkflowRun = z.infer<typeof WorkflowRun>;

/** One job of a run; each combination of a matrix is one. */
export const RunJob = z
  .object({
    id: z.string(),
    status: PartStatus,
    needs: z.array(z.string()),
    matrix: z.record(z.string(), AnyJson).nullable(),
    outputs: z.record(z.string(), AnyJson),
    error: RunError.nullable(),
    startedAt: EpochMs.nullable(),
    finishedAt: EpochMs.nullable(),
  })
  .meta({ id: 'RunJob' });
export type RunJob = z.infer<typeof RunJob>;

/** One try of a step. */
export const StepAttempt = z
  .object({
    attempt: z.number().int(),
    status: PartStatus,
    errorClass: ErrorClass.nullable(),
    error: RunError.nullable(),
    startedAt: EpochMs,
    finishedAt: EpochMs,
  })
  .meta({ id: 'StepAttempt' });
export type StepAttempt = z.infer<typeof StepAttempt>;

/** What a waiting step waits for. */
export const StepWait = z
  .object({
    for: z.enum(['time', 'retry', 'signal', 'approval', 'child', 'decision']),
    name: z.string().optional().describe('The signal'),
    message: z.string().optional().describe('What is to be approved or decided'),
    runId: z.string().optional().describe('The child'),
  })
  .meta({ id: 'StepWait' });
export type StepWait = z.infer<typeof StepWait>;

/** One step of a run, over all its attempts. `id` is `<job>.<step>` and unique in the run. */
export const RunStep = z
  .object({
    id: z.string(),
    jobId: z.string(),
    name: z.string(),
    uses: z.string(),
    status: PartStatus,
    attempts: z.number().int(),
    output: AnyJson.nullable(),
    error: RunError.nullable(),
    waitingFor: StepWait.nullable(),
    wakeAt: EpochMs.nullable().describe('When the wait ends by itself'),
    readyAt: EpochMs.nullable().describe(
      'When it could have started: from then to `startedAt` it was queued',
    ),
    startedAt: EpochMs.nullable(),
    finishedAt: EpochMs.nullable(),
    history: z.array(StepAttempt).describe('Finished attempts, oldest first'),
  })
  .meta({ id: 'RunStep' });
export type RunStep = z.infer<typeof RunStep>;

export const RunLogLine = z
  .object({
    id: z.number().int().describe('Grows with time within a run: the cursor of the live stream'),
    time: EpochMs,
    level: z.string(),
    message: z.string(),
    jobId: z.string().nullable(),
    stepId: z.string().nullable(),
  })
  .meta({ id: 'RunLogLine' });
export type RunLogLine = z.infer<typeof RunLogLine>;

export const RunEvent = z
  .object({
    id: z.number().int(),
    time: EpochMs,
    type: z.string().describe('"run.queued", "step.succeeded", …'),
    jobId: z.string().nullable(),
    stepId: z.string().nullable(),
    data: z.record(z.string(), AnyJson),
  })
  .meta({ id: 'RunEvent' });
export type RunEvent = z.infer<typeof RunEvent>;

/** What a command learns of the step that runs it. @spec docs/workflows.md "After a crash" */
export const WorkflowHostContext = z.object({
  host: z.literal('workflow'),
  runId: z.string(),
  workflowId: z.string(),
  stepId: z.string().describe('<job>.<step>'),
  attempt: z.number().int(),
  idempotencyKey: z.string().optional(),
});
export type WorkflowHostContext = z.infer<typeof WorkflowHostContext>;

/** What a job handler learns of its job. @spec docs/workflows.md "HTTP" */
export const JobHostContext = z.object({
  host: z.literal('job'),
  runId: z.string(),
  jobId: z.string(),
  attempt: z.number().int(),
  idempotencyKey: z.string().optional(),
});
export type JobHostContext = z.infer<typeof JobHostContext>;

const tags = ['workflows'];
const params = z.object({ runId: RunId });
const Limit = z.coerce.number().int().min(1).max(1000).default(50);
const Cursor = z.string().max(1024).optional();

const startOptions = {
  input: AnyJson.default({}),
  idempotencyKey: z.string().min(1).max(256).optional(),
  priority: z.number().int().min(-100).max(100).default(0),
  runAt: EpochMs.optional(),
};

/** Starts a run of a registered workflow, or of a definition sent along. The header `Idempotency-Key` does as well as the field. */
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
      ...startOptions,
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
  summary: 'Status of a run, with its jobs',
  tags,
  params,
  reply: WorkflowRun.extend({ jobs: z.array(RunJob) }),
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

const logQuery = { cursor: Cursor, limit: Limit, stepId: z.string().max(256).optional() };

/** With `Accept: text/event-stream` the lines follow live; `Last-Event-ID` or `cursor` resumes. */
export const listRunLogs = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/logs',
  summary: 'Log lines of a run, oldest first; live as server-sent events',
  tags,
  params,
  query: z.object(logQuery),
  reply: page(RunLogLine),
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

/** With `Accept: text/event-stream` the events follow live, and the stream ends with the run. */
export const listRunEvents = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/events',
  summary: 'What happened to a run, oldest first; live as server-sent events',
  tags,
  params,
  query: z.object({ cursor: Cursor, limit: Limit }),
  reply: page(RunEvent),
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

export const listRunSteps = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/steps',
  summary: 'Steps of a run, with their attempts',
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

/** A new run of the same definition and input. With `fromStep` (`<job>.<step>`) what had succeeded before that step is taken over. */
export const rerunRun = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/rerun',
  summary: 'Run again, from the start or from a step',
  tags,
  status: 202,
  params,
  body: z.strictObject({ fromStep: z.string().max(256).optional() }).default({}),
  reply: z.object({ run: WorkflowRun }),
  errors: [
    'WORKFLOW_RUN_NOT_FOUND',
    'VALIDATION_ERROR',
    'CONFLICT',
    'QUOTA_EXCEEDED',
    'CONCURRENT_LIMIT_EXCEEDED',
  ],
});

export const decideApproval = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/approvals/:stepId',
  summary: 'Approve or refuse a step that waits for it',
  tags,
  params: z.object({ runId: RunId, stepId: z.string().min(1).max(256) }),
  body: z.strictObject({ approved: z.boolean(), comment: z.string().max(4096).optional() }),
  reply: z.object({ accepted: z.literal(true) }),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'NOT_FOUND', 'CONFLICT'],
});

/** A signal that comes before the step waits for it is kept until it does. */
export const sendSignal = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/signals/:name',
  summary: 'Send a signal to a run',
  tags,
  params: z.object({ runId: RunId, name: z.string().min(1).max(256) }),
  body: z.strictObject({ payload: AnyJson.default(null) }).default({ payload: null }),
  reply: z.object({ accepted: z.literal(true) }),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'CONFLICT'],
});

/** What is to become of a step that a crash caught in mid-air and that may have had its effect. */
export const decideStep = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/steps/:stepId/decision',
  summary: 'Decide on a step that was interrupted in mid-air',
  tags,
  params: z.object({ runId: RunId, stepId: z.string().min(1).max(256) }),
  body: z.strictObject({ action: z.enum(['retry', 'succeed', 'fail']), output: AnyJson.default(null) }),
  reply: z.object({ accepted: z.literal(true) }),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'NOT_FOUND', 'CONFLICT'],
});

/** A definition that runs can be started of. */
export const WorkflowSummary = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    description: z.string().nullable(),
    version: z.string(),
    hash: z.string(),
    source: z.string().describe('The file or the plugin it comes from'),
    jobs: z.array(z.string()),
    inputs: z.record(z.string(), AnyJson).nullable(),
  })
  .meta({ id: 'WorkflowSummary' });
export type WorkflowSummary = z.infer<typeof WorkflowSummary>;

/** A definition that could not be registered. */
export const WorkflowFault = z
  .object({ source: z.string(), path: z.string(), message: z.string() })
  .meta({ id: 'WorkflowFault' });
export type WorkflowFault = z.infer<typeof WorkflowFault>;

export const listWorkflows = endpoint({
  method: 'GET',
  path: '/api/v1/workflows',
  summary: 'Registered workflows, and the faults of those that could not be registered',
  tags,
  reply: page(WorkflowSummary).extend({ faults: z.array(WorkflowFault) }),
});

export const Schedule = z
  .object({
    id: z.string(),
    workflowId: z.string(),
    cron: z.string(),
    timezone: z.string(),
    overlap: z.string(),
    catchUp: z.string(),
    paused: z.boolean(),
    nextAt: EpochMs.nullable(),
    lastAt: EpochMs.nullable().describe('The planned time that was served last'),
    lastRunId: z.string().nullable(),
  })
  .meta({ id: 'Schedule' });
export type Schedule = z.infer<typeof Schedule>;

const scheduleParams = z.object({ scheduleId: z.string().min(1).max(512) });

export const listSchedules = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/schedules',
  summary: 'Schedules of the registered workflows',
  tags,
  reply: page(Schedule),
});

export const pauseSchedule = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/schedules/:scheduleId/pause',
  summary: 'Stop starting runs of a schedule',
  tags,
  params: scheduleParams,
  reply: z.object({ schedule: Schedule }),
  errors: ['NOT_FOUND'],
});

/** Times that passed while it was paused are not caught up. */
export const resumeSchedule = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/schedules/:scheduleId/resume',
  summary: 'Start runs of a schedule again',
  tags,
  params: scheduleParams,
  reply: z.object({ schedule: Schedule }),
  errors: ['NOT_FOUND'],
});

export const triggerSchedule = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/schedules/:scheduleId/trigger',
  summary: 'Start a run of a schedule now',
  tags,
  status: 202,
  params: scheduleParams,
  reply: z.object({ run: WorkflowRun }),
  errors: ['NOT_FOUND', 'WORKFLOW_NOT_FOUND', 'QUOTA_EXCEEDED', 'CONCURRENT_LIMIT_EXCEEDED'],
});

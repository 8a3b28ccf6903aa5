import { z } from 'zod';
import { ErrorClass } from './retry-policy.ts';
import { Role } from './role.ts';
import { RunLabels } from './run-labels.ts';
import { AnyJson } from './workflow-fields.ts';

export const RunId = z.string().min(1).max(128).brand('RunId');
export type RunId = z.infer<typeof RunId>;

/** Status of a workflow run. @spec Workflow run; docs/workflow-states.md */
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
/** Final statuses of runs that did not succeed. */
export const UNSUCCESSFUL_STATUSES: readonly RunStatus[] = ['failed', 'timed_out', 'cancelled'];

/** Repeatable query parameter. A run or job matches if it has one of the given statuses. */
export const RunStatusFilter = z
  .union([z.array(RunStatus).min(1), RunStatus.transform((status) => [status])])
  .describe('Repeat it for several statuses');

/** Final status of a run that ends by a cancellation or a timeout. */
export const RunEnding = z.enum(['cancelled', 'timed_out']);
export type RunEnding = z.infer<typeof RunEnding>;

/** Status of a job or step. @spec docs/workflow-states.md */
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

export const EpochMs = z.number().describe('Epoch milliseconds');

export const RunError = z.object({
  code: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.unknown()),
});
export type RunError = z.infer<typeof RunError>;

export const RunTrigger = z.enum(['manual', 'schedule', 'webhook', 'child', 'rerun', 'job', 'run_end']);
export type RunTrigger = z.infer<typeof RunTrigger>;

/** Reason why a run waits. `plugin` means that the plugin is not loaded or that the plugin's code cannot be loaded. */
export const WaitReason = z.enum(['plugin', 'decision', 'approval', 'signal', 'child', 'retry', 'time']);
export type WaitReason = z.infer<typeof WaitReason>;

/** Execution of a workflow definition. */
export const WorkflowRun = z
  .object({
    id: RunId,
    workflowId: z.string(),
    definitionHash: z.string().describe('SHA-256 of the definition used by this run'),
    status: RunStatus,
    queuedReason: z.string().nullable().describe('Why a queued run has not started'),
    waitingReason: WaitReason.nullable().describe(
      'What a run or its clean-up waits for; if several, the first in the order of this enum',
    ),
    ending: RunEnding.nullable().describe('For `cancelling` runs: the final status'),
    trigger: RunTrigger,
    startedBy: z.string().optional().describe('Host id of the caller that started it'),
    traceId: z.string().describe('Trace of the request that started it'),
    deliveryId: z
      .string()
      .nullable()
      .describe('`webhookId` of the delivery that started it, or whose handler did; also of child runs'),
    parentRunId: z.string().nullable(),
    rerunOf: z.string().nullable(),
    pauseScope: z
      .enum(['run', 'workflow'])
      .optional()
      .describe('What was paused: the run or its workflow. Absent if neither'),
    handles: z.string().optional().describe('The run whose end started it'),
    priority: z.number().int(),
    labels: RunLabels,
    input: AnyJson,
    output: AnyJson.nullable(),
    error: RunError.nullable(),
    resumeCount: z.number().int().describe('How often the run was resumed after an interruption'),
    createdAt: EpochMs,
    runAt: EpochMs.nullable().describe('Earliest start'),
    startedAt: EpochMs.nullable(),
    finishedAt: EpochMs.nullable(),
  })
  .meta({ id: 'WorkflowRun' });
export type WorkflowRun = z.infer<typeof WorkflowRun>;

/** Job of a run. A matrix creates one job for each combination of its values. */
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

/** Run that a step of another run started. */
export const RunChild = z
  .object({
    id: RunId,
    workflowId: z.string(),
    status: RunStatus,
    stepId: z.string().describe('Step that started the run'),
  })
  .meta({ id: 'RunChild' });
export type RunChild = z.infer<typeof RunChild>;

/** Run that the end of another run started. */
export const RunHandler = z
  .object({ id: RunId, workflowId: z.string(), status: RunStatus })
  .meta({ id: 'RunHandler' });
export type RunHandler = z.infer<typeof RunHandler>;

export const StepAttempt = z
  .object({
    attempt: z.number().int(),
    status: PartStatus,
    errorClass: ErrorClass.nullable(),
    error: RunError.nullable(),
    queuedAt: EpochMs.nullable().describe('Start of the wait for a slot or process, until `startedAt`'),
    startedAt: EpochMs.nullable().describe('When its work began; null if it never did'),
    waitingAt: EpochMs.nullable().describe(
      'Start of the wait for a time, signal, approval or child, until `finishedAt`',
    ),
    finishedAt: EpochMs,
  })
  .meta({ id: 'StepAttempt' });
export type StepAttempt = z.infer<typeof StepAttempt>;

/** Event that a waiting step needs to continue. */
export const StepWait = z
  .object({
    for: WaitReason,
    name: z.string().optional().describe('Name of the signal or plugin'),
    message: z
      .string()
      .optional()
      .describe('Subject of the approval or decision, or why the plugin is unavailable'),
    form: z
      .record(z.string(), AnyJson)
      .optional()
      .describe('JSON Schema of the data that an approval or signal needs'),
    approvers: z
      .object({ roles: z.array(Role) })
      .optional()
      .describe('Roles of which an approver needs one, or a higher one'),
    agents: z.literal(true).optional().describe('Agents may answer the approval or send the signal'),
    runId: z.string().optional().describe('Id of the child run'),
    timedOut: z
      .literal(true)
      .optional()
      .describe('The step has timed out: it fails once its cancelled child run has cleaned up'),
    interrupted: z
      .literal(true)
      .optional()
      .describe(
        'The step was interrupted earlier; once the plugin is available, it runs again or needs a decision',
      ),
  })
  .meta({ id: 'StepWait' });
export type StepWait = z.infer<typeof StepWait>;

/** Step of a run with all its attempts. `id` has the form `<job>.<step>` and is unique within the run. */
export const RunStep = z
  .object({
    id: z.string(),
    jobId: z.string(),
    name: z.string(),
    uses: z.string(),
    branch: z
      .string()
      .optional()
      .describe(
        'Of workflow code: calls of `ctx.all` that contain the step, as `<call>-<item>`, outermost first, separated by dots',
      ),
    status: PartStatus,
    attempts: z.number().int(),
    output: AnyJson.nullable(),
    error: RunError.nullable(),
    waitingFor: StepWait.nullable(),
    wakeAt: EpochMs.nullable().describe('When the wait times out or elapses'),
    readyAt: EpochMs.nullable().describe('When the step became ready; it is queued from then to `startedAt`'),
    queuedAt: EpochMs.nullable().describe('When the latest attempt was queued'),
    startedAt: EpochMs.nullable().describe('When the work of the first attempt began'),
    attemptStartedAt: EpochMs.nullable().describe('When the work of the latest attempt began'),
    waitingAt: EpochMs.nullable().describe(
      'When the latest attempt began to wait for a time, a signal, an approval or a child',
    ),
    finishedAt: EpochMs.nullable(),
    history: z.array(StepAttempt).describe('Finished attempts, oldest first'),
  })
  .meta({ id: 'RunStep' });
export type RunStep = z.infer<typeof RunStep>;

export const RunLogLine = z
  .object({
    id: z.number().int().describe('Increases within a run; cursor of the live stream'),
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

/** Host context of a command that a workflow step runs. @spec docs/workflows.md "After a crash" */
export const WorkflowHostContext = z.object({
  host: z.literal('workflow'),
  runId: z.string(),
  workflowId: z.string(),
  stepId: z.string().describe('<job>.<step>'),
  attempt: z.number().int(),
  idempotencyKey: z.string().optional(),
});
export type WorkflowHostContext = z.infer<typeof WorkflowHostContext>;

/** Host context of a job handler. @spec docs/workflows.md "HTTP" */
export const JobHostContext = z.object({
  host: z.literal('job'),
  runId: z.string(),
  jobId: z.string(),
  attempt: z.number().int(),
  idempotencyKey: z.string().optional(),
});
export type JobHostContext = z.infer<typeof JobHostContext>;

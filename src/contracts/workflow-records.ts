import { z } from 'zod';
import { AnyJson, ErrorClass } from './workflow-definition.ts';

export const RunId = z.string().min(1).max(128).brand('RunId');
export type RunId = z.infer<typeof RunId>;

/** @spec Workflow run; docs/workflow-states.md */
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

/** What a run is ended as from outside: it is cancelled, or its time is up. */
export const RunEnding = z.enum(['cancelled', 'timed_out']);
export type RunEnding = z.infer<typeof RunEnding>;

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

export const EpochMs = z.number().describe('Epoch milliseconds');

export const RunError = z.object({
  code: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.unknown()),
});
export type RunError = z.infer<typeof RunError>;

/** What started a run. */
export const RunTrigger = z.enum(['manual', 'schedule', 'webhook', 'child', 'rerun', 'job']);
export type RunTrigger = z.infer<typeof RunTrigger>;

/** What a run waits for. `plugin`: a plugin that is not loaded, or whose code does not load. */
export const WaitReason = z.enum(['plugin', 'decision', 'approval', 'signal', 'child', 'retry', 'time']);
export type WaitReason = z.infer<typeof WaitReason>;

/** One execution of a workflow definition. */
export const WorkflowRun = z
  .object({
    id: RunId,
    workflowId: z.string(),
    definitionHash: z.string().describe('SHA-256 of the definition that this run keeps to'),
    status: RunStatus,
    queuedReason: z.string().nullable().describe('Why a queued run does not run yet'),
    waitingReason: WaitReason.nullable().describe(
      'What a run, or its clean-up, waits for; of several, the first of this list',
    ),
    ending: RunEnding.nullable().describe('Of a run in `cancelling`: the status that it ends with'),
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
    queuedAt: EpochMs.nullable().describe('From then to `startedAt` it waited for a slot or a process'),
    startedAt: EpochMs.nullable().describe('When its work began; null: it never did'),
    waitingAt: EpochMs.nullable().describe(
      'From then to `finishedAt` it waited for a time, a signal, an approval or a child',
    ),
    finishedAt: EpochMs,
  })
  .meta({ id: 'StepAttempt' });
export type StepAttempt = z.infer<typeof StepAttempt>;

/** What a waiting step waits for. */
export const StepWait = z
  .object({
    for: WaitReason,
    name: z.string().optional().describe('The signal, or the plugin'),
    message: z.string().optional().describe('What is to be approved or decided, or why the plugin is away'),
    runId: z.string().optional().describe('The child'),
    timedOut: z
      .literal(true)
      .optional()
      .describe("The step's time is up: it fails once the child, which was cancelled, has cleaned up"),
    interrupted: z
      .literal(true)
      .optional()
      .describe(
        'The step was interrupted before; once the plugin is back, it runs again or asks for a decision',
      ),
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

import { z } from 'zod';
import { durationFields, foldDurations } from './duration.ts';
import { DURATION_FAULT, durationFault } from './duration-text.ts';
import { HandlerRef } from './handler-ref.ts';
import { McpExposure } from './mcp-exposure.ts';
import { RetryPolicy } from './retry-policy.ts';
import { Role } from './role.ts';
import { actionOf, MAX_SCRIPT_CHARS, scriptFields } from './script-step.ts';
import { SecretName } from './secrets.ts';
import { AnyJson, Condition, Ms, Name, WorkflowId } from './workflow-fields.ts';
import { EndHandlers, ScheduleDefinition, WebhookTrigger } from './workflow-starts.ts';

/** Opening characters of an expression in a text. */
export const EXPRESSION_OPENING = '${{';

/** Duration of a step that only waits. An expression is checked when the step begins. */
const Sleep = z
  .string({ error: DURATION_FAULT })
  .max(4096)
  .refine((text) => text.includes(EXPRESSION_OPENING) || durationFault(text) === undefined, {
    error: ({ input }) => durationFault(input),
  });

const isObject = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;

const Step = z
  .strictObject({
    id: Name.optional(),
    name: z.string().max(256).optional(),
    uses: z.string().min(1).max(512).optional(),
    /** Short form of a `wait` step: `sleep: 24h`. */
    sleep: Sleep.optional(),
    /** Script that the step runs. */
    run: z.string().min(1).max(MAX_SCRIPT_CHARS).optional(),
    ...scriptFields,
    with: z.record(z.string(), AnyJson).default({}),
    if: Condition.optional(),
    retry: RetryPolicy.optional(),
    timeoutMs: Ms.optional(),
    ...durationFields('timeoutMs'),
    continueOnError: z.boolean().default(false),
    /** Whether the step is safe to execute twice. If true, the step is repeated after a crash. */
    idempotent: z.boolean().optional(),
    /**
     * Key that prevents a second effect of a repeated execution. Handlers receive the key, and `http` steps send the
     * key.
     */
    idempotencyKey: z.string().min(1).max(1024).optional(),
  })
  .refine(({ uses, run, sleep }) => (uses ?? run ?? sleep) !== undefined, {
    path: ['uses'],
    error: 'is missing: name a command or a kind of step, or write run: or sleep: instead',
    when: isObject,
  })
  .meta({ oneOf: ['uses', 'run', 'sleep'].map((key) => ({ required: [key] })) })
  .transform((step, payload) => actionOf(foldDurations('timeoutMs')(step, payload), payload));
export interface StepDefinition extends z.infer<typeof Step> {}
export interface StepInput extends z.input<typeof Step> {}
export const StepDefinition: z.ZodType<StepDefinition, StepInput> = Step;

const Job = z
  .strictObject({
    name: z.string().max(256).optional(),
    needs: z
      .union([Name, z.array(Name).max(256)])
      .default([])
      .transform((needs) => [needs].flat()),
    if: Condition.optional(),
    strategy: z
      .strictObject({
        matrix: z.record(Name, z.union([z.array(AnyJson).min(1).max(256), z.string().min(1)])),
        maxParallel: z.number().int().min(1).max(256).optional(),
        failFast: z.boolean().default(true),
      })
      .optional(),
    timeoutMs: Ms.optional(),
    ...durationFields('timeoutMs'),
    continueOnError: z.boolean().default(false),
    outputs: z.record(Name, AnyJson).default({}),
    steps: z.array(StepDefinition).min(1).max(200),
  })
  .transform(foldDurations('timeoutMs'));
export interface JobDefinition extends z.infer<typeof Job> {}
export interface JobInput extends z.input<typeof Job> {}
export const JobDefinition: z.ZodType<JobDefinition, JobInput> = Job;

export const CONCURRENCY_STRATEGIES = ['queue', 'cancel-running', 'replace-queued', 'reject'] as const;

/** Fields common to workflows that are defined by steps and workflows that are defined in code. */
const common = {
  $schema: z.string().optional(),
  id: WorkflowId,
  name: z.string().max(256).optional(),
  description: z.string().max(4096).optional(),
  version: z
    .union([z.string().max(64), z.number()])
    .transform(String)
    .default('1'),
  inputs: z.record(z.string(), AnyJson).optional(),
  // The field has no default value, because a default would change the hashes of existing definitions.
  signals: z.record(z.string().min(1).max(256), z.record(z.string(), AnyJson)).optional(),
  signalApprovers: z
    .record(z.string().min(1).max(256), z.strictObject({ roles: z.array(Role).min(1) }))
    .optional(),
  on: z
    .strictObject({
      manual: z.boolean().default(true),
      schedule: z.array(ScheduleDefinition).max(50).default([]),
      // The field has no default value, because a default would change the hashes of existing definitions.
      webhook: z
        .union([WebhookTrigger, z.array(WebhookTrigger).min(1).max(50)])
        .transform((triggers) => [triggers].flat())
        .optional(),
      failure: EndHandlers,
      success: EndHandlers,
    })
    .prefault({}),
  concurrency: z
    .strictObject({
      key: z.string().min(1).max(1024),
      limit: z.number().int().min(1).max(10_000).default(1),
      strategy: z.enum(CONCURRENCY_STRATEGIES).default('queue'),
    })
    .optional(),
  timeoutMs: Ms.optional(),
  /** Time limit in ms of the clean-up that runs after a cancellation or timeout of the run. */
  cleanUpTimeoutMs: Ms.optional(),
  ...durationFields('timeoutMs', 'cleanUpTimeoutMs'),
  retry: RetryPolicy.optional(),
  mcp: McpExposure.optional(),
};

const Workflow = z
  .strictObject({
    ...common,
    // The field has no default value, because a default would change the hashes of existing definitions.
    permissions: z.strictObject({ secrets: z.array(SecretName).min(1).max(100).optional() }).optional(),
    outputs: z.record(Name, AnyJson).optional(),
    jobs: z
      .record(Name, JobDefinition)
      .refine((jobs) => Object.keys(jobs).length > 0, 'must have a job')
      .refine((jobs) => Object.keys(jobs).length <= 256, 'must not have more than 256 jobs'),
  })
  .transform(foldDurations('timeoutMs', 'cleanUpTimeoutMs'));
export interface WorkflowDefinition extends z.infer<typeof Workflow> {}
export interface WorkflowInput extends z.input<typeof Workflow> {}
/** A workflow definition in YAML or JSON. @spec docs/workflows.md */
export const WorkflowDefinition: z.ZodType<WorkflowDefinition, WorkflowInput> = Workflow;

const CodeWorkflow = z
  .strictObject({ ...common, handler: HandlerRef })
  .transform(foldDurations('timeoutMs', 'cleanUpTimeoutMs'));
export interface CodeWorkflowDefinition extends z.infer<typeof CodeWorkflow> {}
export interface CodeWorkflowInput extends z.input<typeof CodeWorkflow> {}
/** Workflow in a plugin's manifest whose steps are defined in code. @spec docs/workflows.md "Workflows in code" */
export const CodeWorkflowDefinition: z.ZodType<CodeWorkflowDefinition, CodeWorkflowInput> = CodeWorkflow;

/** Returns whether an entry of a manifest's `workflows` is defined in code. */
export function isCodeWorkflow(definition: Record<string, unknown>): boolean {
  return 'handler' in definition;
}

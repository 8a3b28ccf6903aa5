import { z } from 'zod';
import { DURATION_FAULT, durationFields, durationMs, foldDurations, MAX_DURATION_MS } from './duration.ts';
import { ERROR_CLASSES } from './error-classes.ts';
import { HandlerRef } from './handler-ref.ts';
import { EventName, PluginId } from './ids.ts';
import { McpExposure } from './mcp-exposure.ts';
import { EventType } from './message-records.ts';
import { Role } from './role.ts';
import { SecretName } from './secrets.ts';

/**
 * Any JSON value. `z.json()` is not used, because `z.json()` traverses the whole parsed value and silently drops
 * `__proto__` keys.
 */
export const AnyJson = z
  .unknown()
  .refine((value) => value !== undefined, 'is required') as unknown as AnyJsonSchema;
// An interface is named in declarations, which would otherwise repeat the type at each use. The same holds below.
export interface AnyJsonSchema extends z.ZodType<z.infer<ReturnType<typeof z.json>>> {}

/** Name of a job or step, which appears in expressions (`steps.build.output`) and in URLs. */
const Name = z
  .string()
  .max(64)
  .regex(
    /^[A-Za-z_][A-Za-z0-9_-]*$/,
    'must start with a letter or "_" and contain only letters, digits, "_" and "-"',
  );

export const WorkflowId = z
  .string()
  .max(256)
  .regex(/^[A-Za-z0-9@][A-Za-z0-9@/._-]*$/, 'must contain only letters, digits and @ / . _ -');

const Ms = z.number().int().positive().max(MAX_DURATION_MS);

export const ErrorClass = z.enum(ERROR_CLASSES);
export type ErrorClass = z.infer<typeof ErrorClass>;
export const TRANSIENT_CLASSES: readonly ErrorClass[] = ['network', 'timeout', 'rate_limit', 'server'];

const INITIAL_MS = 1000;
const MAX_MS = 60_000;
const backoff = {
  maxAttempts: z.number().int().min(1).max(100),
  initialMs: Ms.optional(),
  factor: z.number().min(1).max(100),
  maxMs: Ms.optional(),
};

/**
 * Retries failures whose class is in `on`, by default the classes in docs/workflows.md. The delay before attempt n+1 is
 * `initialMs * factor^(n-1)`, at most `maxMs`. With `full` jitter, the delay is a random part of this value. A longer
 * `Retry-After` takes precedence. No attempt starts later than `deadlineMs` after the first attempt.
 */
const Policy = z
  .strictObject({
    maxAttempts: backoff.maxAttempts.default(3),
    // Defaults follow the fold, which must see whether the field was given.
    initialMs: backoff.initialMs.meta({ default: INITIAL_MS }),
    factor: backoff.factor.default(2),
    maxMs: backoff.maxMs.meta({ default: MAX_MS }),
    jitter: z.enum(['full', 'none']).default('full'),
    deadlineMs: Ms.optional(),
    ...durationFields('initialMs', 'maxMs', 'deadlineMs'),
    on: z.array(ErrorClass).optional(),
    classes: z
      .partialRecord(
        ErrorClass,
        z
          .strictObject({
            maxAttempts: backoff.maxAttempts.optional(),
            initialMs: backoff.initialMs,
            factor: backoff.factor.optional(),
            maxMs: backoff.maxMs,
            ...durationFields('initialMs', 'maxMs'),
          })
          .transform(foldDurations('initialMs', 'maxMs')),
      )
      .default({}),
  })
  .transform(foldDurations('initialMs', 'maxMs', 'deadlineMs'))
  .transform(({ initialMs = INITIAL_MS, maxMs = MAX_MS, ...policy }) => ({ ...policy, initialMs, maxMs }));
export interface RetryPolicy extends z.infer<typeof Policy> {}
export interface PolicyInput extends z.input<typeof Policy> {}
export const RetryPolicy: z.ZodType<RetryPolicy, PolicyInput> = Policy;

/** CEL condition, optionally wrapped in `${{ }}`. */
const Condition = z.union([z.string().min(1).max(4096), z.boolean()]);

/** Opening characters of an expression in a text. */
export const EXPRESSION_OPENING = '${{';

/** Duration of a step that only waits. An expression is checked when the step begins. */
const Sleep = z
  .string({ error: DURATION_FAULT })
  .max(4096)
  .refine((text) => text.includes(EXPRESSION_OPENING) || durationMs(text) !== undefined, DURATION_FAULT);

const isObject = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;

const Step = z
  .strictObject({
    id: Name.optional(),
    name: z.string().max(256).optional(),
    uses: z.string().min(1).max(512).optional(),
    /** Short form of a `wait` step: `sleep: 24h`. */
    sleep: Sleep.optional(),
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
  .refine(({ uses, sleep }) => (uses ?? sleep) !== undefined, {
    path: ['uses'],
    error: 'is missing: name a command or a kind of step, or write sleep: 24h',
    when: isObject,
  })
  .refine(
    ({ uses, sleep, with: values }) =>
      sleep === undefined || (uses === undefined && Object.keys(values ?? {}).length === 0),
    {
      path: ['sleep'],
      error: 'says what the step does, so remove uses and with',
      when: isObject,
    },
  )
  .meta({ oneOf: [{ required: ['uses'] }, { required: ['sleep'] }] })
  .transform(foldDurations('timeoutMs'))
  .transform(({ uses, sleep, ...step }) =>
    sleep === undefined ? { ...step, uses: uses! } : { ...step, uses: 'wait', with: { for: sleep } },
  );
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

/**
 * Schedule of a workflow. `overlap` applies to a start while the previous run is unfinished. `catchUp` applies to
 * missed start times.
 */
export const ScheduleDefinition = z.strictObject({
  // The field has no default value, because a default would change the hashes of existing definitions.
  id: Name.optional(),
  cron: z.string().min(1).max(256),
  timezone: z.string().min(1).max(64).default('UTC'),
  overlap: z.enum(['skip', 'queue', 'allow']).default('skip'),
  catchUp: z.enum(['none', 'latest', 'all']).default('latest'),
  input: AnyJson.default({}),
});
export type ScheduleDefinition = z.infer<typeof ScheduleDefinition>;

/** A schedule in a plugin's manifest, for any registered workflow. */
export const PluginSchedule = ScheduleDefinition.extend({ workflow: WorkflowId });
export type PluginSchedule = z.infer<typeof PluginSchedule>;

export const CONCURRENCY_STRATEGIES = ['queue', 'cancel-running', 'replace-queued', 'reject'] as const;

/** Trigger that starts a run for a delivery of a webhook after the delivery's handler succeeds. */
export const WebhookTrigger = z.strictObject({
  pluginId: PluginId,
  event: EventName,
  instanceId: z.string().min(1).max(256).optional(),
  if: Condition.optional(),
  /**
   * Input of the run. Defaults to the payload of the delivery. Expressions can use `delivery`, which has `payload`,
   * `event`, `webhookId`, `instanceId` and `receivedAt`.
   */
  input: AnyJson.optional(),
});
export type WebhookTrigger = z.infer<typeof WebhookTrigger>;

/**
 * Handler of the end of a run: starts a workflow, or sends an outgoing message. Expressions can use `input` and `run`,
 * which has facts about the ended run. `input` and `data` default to these facts without the output. @spec
 * docs/workflows.md "When a run has ended"
 */
const Handler = z
  .strictObject({
    if: Condition.optional(),
    workflow: WorkflowId.optional(),
    input: AnyJson.optional(),
    message: z
      .strictObject({
        type: EventType,
        data: AnyJson.optional(),
        application: z.string().min(1).max(1024).optional(),
      })
      .optional(),
  })
  .refine(({ workflow, message }) => (workflow === undefined) !== (message === undefined), {
    message: 'set either "workflow" or "message"',
  })
  .refine(({ input, message }) => input === undefined || message === undefined, {
    path: ['input'],
    message: 'belongs to "workflow"; a message has "data"',
  });
export interface EndHandler extends z.infer<typeof Handler> {}
export interface EndHandlerInput extends z.input<typeof Handler> {}
export const EndHandler: z.ZodType<EndHandler, EndHandlerInput> = Handler;

const endHandlers = z
  .union([EndHandler, z.array(EndHandler).min(1).max(10)])
  .transform((handlers) => [handlers].flat())
  .optional();

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
      failure: endHandlers,
      success: endHandlers,
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

/** A workflow definition in YAML or JSON. @spec docs/workflows.md */
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
export const WorkflowDefinition: z.ZodType<WorkflowDefinition, WorkflowInput> = Workflow;

/** Workflow in a plugin's manifest whose steps are defined in code. @spec docs/workflows.md "Workflows in code" */
const CodeWorkflow = z
  .strictObject({ ...common, handler: HandlerRef })
  .transform(foldDurations('timeoutMs', 'cleanUpTimeoutMs'));
export interface CodeWorkflowDefinition extends z.infer<typeof CodeWorkflow> {}
export interface CodeWorkflowInput extends z.input<typeof CodeWorkflow> {}
export const CodeWorkflowDefinition: z.ZodType<CodeWorkflowDefinition, CodeWorkflowInput> = CodeWorkflow;

/** Returns whether an entry of a manifest's `workflows` is defined in code. */
export function isCodeWorkflow(definition: Record<string, unknown>): boolean {
  return 'handler' in definition;
}

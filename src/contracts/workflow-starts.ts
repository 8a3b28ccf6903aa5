import { z } from 'zod';
import { EventName, PluginId } from './ids.ts';
import { EventType } from './message-records.ts';
import { AnyJson, Condition, Name, WorkflowId } from './workflow-fields.ts';

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

/** Prefix of the idempotency keys of runs and messages that follow an ended run. Keys of callers may not start with it. */
export const END_KEY_PREFIX = 'end/';

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
/**
 * Handler of the end of a run: starts a workflow, or sends an outgoing message. Expressions can use `input` and `run`,
 * which has facts about the ended run. `input` and `data` default to these facts without the output.
 * @spec docs/workflows.md "When a run has ended"
 */
export const EndHandler: z.ZodType<EndHandler, EndHandlerInput> = Handler;

/** One handler or several. Parsing returns a list. */
export const EndHandlers = z
  .union([EndHandler, z.array(EndHandler).min(1).max(10)])
  .transform((handlers) => [handlers].flat())
  .optional();

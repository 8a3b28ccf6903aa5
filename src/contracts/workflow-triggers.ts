import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { EventName, PluginId } from './ids.ts';
import { AnyJson } from './workflow-fields.ts';
import { EpochMs, RunId } from './workflow-records.ts';

/** Webhook whose deliveries start workflow runs. */
export const TriggeringWebhook = z.object({ pluginId: PluginId, event: EventName });
export type TriggeringWebhook = z.infer<typeof TriggeringWebhook>;

/**
 * Lists the webhooks that start workflows, for use by the gateway. The gateway does not forward requests to this
 * internal path.
 */
export const listTriggers = endpoint({
  method: 'GET',
  path: '/internal/workflows/triggers',
  summary: 'List webhooks that start workflows',
  reply: z.object({ items: z.array(TriggeringWebhook) }),
  errors: ['FORBIDDEN'],
});

/** A delivery whose handler has succeeded. */
export const DeliveredEvent = z.strictObject({
  webhookId: z.string().min(1).max(128),
  /** Delivery id of the sender. If set, workflow starts are deduplicated by this id instead of `webhookId`. */
  deliveryId: z.string().min(1).max(512).optional(),
  pluginId: PluginId,
  event: EventName,
  instanceId: z.string().max(256).nullable(),
  receivedAt: EpochMs,
  payload: AnyJson,
});
export type DeliveredEvent = z.infer<typeof DeliveredEvent>;

/**
 * `runs` lists the runs that this call or an earlier call started. `refused` lists the workflows that this delivery
 * cannot start.
 */
export const DeliveryStarts = z.object({
  runs: z.array(z.object({ workflowId: z.string(), runId: RunId })),
  refused: z.array(z.object({ workflowId: z.string(), code: z.string(), message: z.string() })),
});
export type DeliveryStarts = z.infer<typeof DeliveryStarts>;

/**
 * Starts every matching workflow. Starts are deduplicated by `deliveryId`, or by `webhookId` if the request contains no
 * `deliveryId`.
 */
export const startByDelivery = endpoint({
  method: 'POST',
  path: '/internal/workflows/deliveries',
  summary: 'Start the workflows triggered by a delivery',
  body: DeliveredEvent,
  reply: DeliveryStarts,
  errors: ['FORBIDDEN', 'QUOTA_EXCEEDED', 'CONCURRENT_LIMIT_EXCEEDED'],
});

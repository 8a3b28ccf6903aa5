import type { WebhookListItem } from '../../../contracts/webhook-admin.ts';
import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';

/** Returns whether the webhook of an endpoint, or the instance, is paused. */
export function isPaused(webhooks: readonly WebhookListItem[], target: Target): boolean {
  const webhook = webhooks.find(
    ({ pluginId, event }) => pluginId === target.pluginId && event === target.event,
  );
  if (!webhook) return false;
  return (
    webhook.paused || webhook.instances.some((each) => each.instanceId === target.instanceId && each.paused)
  );
}

export type Target = Pick<WebhookDeliveryDetails, 'pluginId' | 'event' | 'instanceId'>;

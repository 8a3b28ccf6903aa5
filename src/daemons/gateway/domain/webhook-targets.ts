import type { ManifestV3, WebhookHandlerDecl } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';

/** A plugin as the gateway needs it. */
export interface WebhookPlugin {
  id: string;
  version: string;
  root: string;
  manifest: ManifestV3;
}

export interface DeclaredWebhook {
  plugin: WebhookPlugin;
  webhook: WebhookHandlerDecl;
}

export interface WebhookTargets {
  /** Step 1. Throws PLUGIN_NOT_FOUND or WEBHOOK_NOT_FOUND, also for an instance id that is missing or superfluous. */
  require(pluginId: string, event: string, instanceId: string | undefined): DeclaredWebhook;
  isDeclared(pluginId: string, event: string): boolean;
  find(pluginId: string, event: string): DeclaredWebhook | undefined;
  all(): DeclaredWebhook[];
}

/** The webhooks that loaded plugins declare. @spec Webhook delivery step 1 */
export function createWebhookTargets(plugins: Iterable<WebhookPlugin>): WebhookTargets {
  const byPlugin = new Map<string, Map<string, DeclaredWebhook>>();
  for (const plugin of plugins) {
    byPlugin.set(
      plugin.id,
      new Map(plugin.manifest.webhooks.map((webhook) => [webhook.event, { plugin, webhook }])),
    );
  }
  return {
    require(pluginId, event, instanceId) {
      const webhooks = byPlugin.get(pluginId);
      if (!webhooks)
        throw new PlatformError('PLUGIN_NOT_FOUND', `No plugin ${JSON.stringify(pluginId)} is loaded here.`);
      const target = webhooks.get(event);
      if (!target) {
        throw new PlatformError(
          'WEBHOOK_NOT_FOUND',
          `Plugin ${pluginId} declares no webhook ${JSON.stringify(event)}.`,
        );
      }
      if (target.webhook.multi && instanceId === undefined) {
        throw new PlatformError(
          'WEBHOOK_NOT_FOUND',
          `Webhook ${pluginId} ${event} has instances: end the path with /<instance_id>.`,
        );
      }
      if (!target.webhook.multi && instanceId !== undefined) {
        throw new PlatformError(
          'WEBHOOK_NOT_FOUND',
          `Webhook ${pluginId} ${event} has no instances: the path ends with the event.`,
        );
      }
      return target;
    },
    isDeclared: (pluginId, event) => byPlugin.get(pluginId)?.has(event) ?? false,
    find: (pluginId, event) => byPlugin.get(pluginId)?.get(event),
    all: () => [...byPlugin.values()].flatMap((webhooks) => [...webhooks.values()]),
  };
}

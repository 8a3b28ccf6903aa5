import type { ManifestV3, WebhookHandlerDecl } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';

/** The fields of a plugin that the gateway needs. */
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
  /** Step 1. Throws PLUGIN_NOT_FOUND or WEBHOOK_NOT_FOUND, also for a missing or unexpected instance id. */
  require(pluginId: string, event: string, instanceId: string | undefined): DeclaredWebhook;
  isDeclared(pluginId: string, event: string): boolean;
  find(pluginId: string, event: string): DeclaredWebhook | undefined;
  all(): DeclaredWebhook[];
}

type Declared = Map<string, Map<string, DeclaredWebhook>>;

/**
 * Webhooks declared by loaded plugins; `plugins` returns another array after a reload. @spec Webhook delivery
 * step 1
 */
export function createWebhookTargets(plugins: () => readonly WebhookPlugin[]): WebhookTargets {
  let known: readonly WebhookPlugin[] | undefined;
  let byPlugin: Declared = new Map();

  function declared(): Declared {
    const current = plugins();
    if (current !== known) {
      known = current;
      byPlugin = declaredBy(current);
    }
    return byPlugin;
  }

  return {
    require(pluginId, event, instance) {
      // A trailing slash does not name an instance.
      const instanceId = instance === '' ? undefined : instance;
      const webhooks = declared().get(pluginId);
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
          `Webhook ${pluginId} ${event} has instances: append /<instance_id> to the path (svc: --instance).`,
        );
      }
      if (!target.webhook.multi && instanceId !== undefined) {
        throw new PlatformError(
          'WEBHOOK_NOT_FOUND',
          `Webhook ${pluginId} ${event} has no instances: the path must end with the event.`,
        );
      }
      return target;
    },
    isDeclared: (pluginId, event) => declared().get(pluginId)?.has(event) ?? false,
    find: (pluginId, event) => declared().get(pluginId)?.get(event),
    all: () => [...declared().values()].flatMap((webhooks) => [...webhooks.values()]),
  };
}

function declaredBy(plugins: readonly WebhookPlugin[]): Declared {
  return new Map(
    plugins.map((plugin) => [
      plugin.id,
      new Map(plugin.manifest.webhooks.map((webhook) => [webhook.event, { plugin, webhook }])),
    ]),
  );
}

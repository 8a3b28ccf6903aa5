import type { PluginWebhook, WebhookListItem } from '../../contracts/index.ts';
import type { PlatformService } from '../execution.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';

/** What `ctx.webhooks` needs of the gateway, which keeps the secrets. */
export interface WebhookAccess {
  /** Those of one plugin, as provisioned in the namespace of the scope's tenant. */
  list(scope: CallScope, pluginId: string): Promise<WebhookListItem[]>;
}

/** `ctx.webhooks`: where the plugin's own webhooks are; never a secret. Throws PERMISSION_DENIED, UPSTREAM_UNAVAILABLE. */
export function createWebhooksService(webhooks: WebhookAccess): PlatformService {
  return {
    async list(context) {
      requirePlatform(context.request, 'webhooks');
      const items = await webhooks.list(callScope(context), context.request.plugin.id);
      return items.map(view);
    },
  };
}

function view({ event, multi, auth, paused, provisioned, url, instances }: WebhookListItem): PluginWebhook {
  return {
    event,
    multi,
    auth,
    paused,
    provisioned,
    url,
    instances: instances.map((instance) => ({
      instanceId: instance.instanceId,
      provisioned: instance.provisioned,
      url: instance.url,
    })),
  };
}

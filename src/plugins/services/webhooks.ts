import type { PluginWebhook, WebhookListItem } from '../../contracts/index.ts';
import type { PlatformService } from '../execution.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';

/** Gateway methods that `ctx.webhooks` uses. */
export interface WebhookAccess {
  /** Returns the provisioned webhooks of one plugin in the namespace of the scope's tenant. */
  list(scope: CallScope, pluginId: string): Promise<WebhookListItem[]>;
}

/**
 * Creates `ctx.webhooks`, which lists the URLs and state of the plugin's own webhooks, without secrets. `list` throws
 * PERMISSION_DENIED if the manifest does not request the service, and UPSTREAM_UNAVAILABLE if the gateway cannot be
 * reached.
 */
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

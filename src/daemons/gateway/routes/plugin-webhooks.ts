import { listPluginWebhooks } from '../../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import type { WebhookListing } from '../domain/webhooks/admin/listing.ts';

export interface PluginWebhookServices {
  webhookListing: WebhookListing;
  internalSecret: string;
}

/** Serves `ctx.webhooks` of plugins that run in other services. Callers authenticate with the service key. */
export function pluginWebhookRoutes(
  http: Http,
  { webhookListing, internalSecret }: PluginWebhookServices,
): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  mount(http, listPluginWebhooks, { auth: 'open' }, async ({ params, request }) => {
    const { namespaceId } = await identify(request);
    return { items: await webhookListing.list(namespaceId, params.pluginId) };
  });
}

import type {
  EventName,
  InstanceId,
  PluginId,
  WebhookAuthConfig,
  WebhookListItem,
} from '../../../../../contracts/index.ts';
import type { SecretRecord } from '../../../../../store/ports/index.ts';
import { protectionOf } from '../../../../../webhooks/schemes/index.ts';
import { endpointName } from '../receive/endpoint-name.ts';
import type { RefusalSamples } from '../receive/refusal-samples.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import { withUrlToken } from '../receive/url-token.ts';
import type { WebhookUrl } from '../receive/webhook-url.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { WebhookPauses } from './pauses.ts';

export interface WebhookListingDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  pauses: WebhookPauses;
  /** Counts the webhook requests of the last day that were not recorded. */
  samples: RefusalSamples;
  urlOf: WebhookUrl;
}

/** Lists the declared webhooks with their state in one namespace. @spec Webhook admin API */
export class WebhookListing {
  readonly #deps: WebhookListingDeps;

  constructor(deps: WebhookListingDeps) {
    this.#deps = deps;
  }

  /** Lists the webhooks of one plugin, or of all plugins if `pluginId` is undefined. */
  async list(namespaceId: string, pluginId?: string): Promise<WebhookListItem[]> {
    const { targets, secrets, pauses, samples, urlOf } = this.#deps;
    const [records, sums] = await Promise.all([secrets.list(namespaceId), samples.sums(namespaceId)]);
    const wanted = targets.all().filter(({ plugin }) => pluginId === undefined || plugin.id === pluginId);
    return wanted.map((target) => {
      const { plugin, webhook } = target;
      const own = records.filter((record) => record.pluginId === plugin.id && record.event === webhook.event);
      const base = { namespaceId, pluginId: plugin.id, event: webhook.event as string };
      const names = own.map((record) => endpointName(record));
      const single = own.find((record) => record.instanceId === '');
      return {
        pluginId: plugin.id as PluginId,
        event: webhook.event as EventName,
        multi: webhook.multi,
        paused: pauses.isPaused({ ...base, instanceId: '' }),
        unrecorded: names.reduce((sum, name) => sum + (sums.get(name) ?? 0), 0),
        ...authOf(webhook.auth),
        ...protectionIn(webhook.auth),
        async: webhook.async,
        ...stateOf(
          webhook.multi ? own[0] : single,
          withUrlToken(urlOf({ ...base, instanceId: '' }, single?.namespaceInUrl ?? false), webhook.auth),
        ),
        instances: webhook.multi
          ? own.map((record) => ({
              instanceId: record.instanceId as InstanceId,
              paused: pauses.isPaused({ ...base, instanceId: record.instanceId }),
              ...stateOf(
                record,
                withUrlToken(
                  urlOf({ ...base, instanceId: record.instanceId }, record.namespaceInUrl),
                  webhook.auth,
                ),
              ),
            }))
          : [],
      };
    });
  }
}

/** Returns what a sender must know of the authentication, beside the secret. */
function authOf(auth: WebhookAuthConfig) {
  if (auth.type === 'provider') return { auth: auth.type, provider: auth.provider };
  if (auth.type === 'secret') return { auth: auth.type, header: auth.header };
  if (auth.type !== 'hmac') return { auth: auth.type };
  const { type, header, prefix, encoding } = auth;
  return { auth: type, header, prefix, encoding };
}

function protectionIn(auth: WebhookAuthConfig) {
  const protects = protectionOf(auth);
  return protects ? { protects } : {};
}

function stateOf(record: SecretRecord | undefined, url: string) {
  return {
    provisioned: record !== undefined,
    url,
    rotatedAt: record?.rotatedAt ?? null,
    previousExpiresAt: record?.previousExpiresAt ?? null,
    previousUsedAt: record?.previousUsedAt ?? null,
  };
}

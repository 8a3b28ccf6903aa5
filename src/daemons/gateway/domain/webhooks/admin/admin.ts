import {
  type EventName,
  type InstanceId,
  type PluginId,
  SECRET_GENERATING_PROVIDERS,
  type WebhookAuthConfig,
  type WebhookListItem,
} from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { SecretKey, SecretRecord } from '../../../../../store/ports/index.ts';
import { deliveryPath } from '../receive/delivery-path.ts';
import { describe, endpointName } from '../receive/endpoint-name.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import { checkGivenSecret, makeSecret } from '../verify/new-secret.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { WebhookPauses } from './pauses.ts';

export interface ProvisionOptions {
  /** Undefined: unchanged. */
  namespaceInUrl: boolean | undefined;
  /** A secret that the provider generated. */
  given?: string | undefined;
  /** Generates a secret even if one is provisioned and the provider generates its own. */
  generate?: boolean | undefined;
  requestId: string;
  traceId: string;
}

/** Calls a plugin's `onProvision` handler. */
export type RunOnProvision = (
  target: DeclaredWebhook,
  handler: string,
  input: {
    event: string;
    namespaceId: string;
    instanceId?: string;
    url: string;
    secret: string;
    rotated: boolean;
  },
  options: ProvisionOptions,
) => Promise<unknown>;

export interface WebhookAdminDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  runOnProvision: RunOnProvision;
  /** Without a trailing slash. */
  publicUrl: () => string;
  pauses: () => WebhookPauses;
  /** Requests without a record within the last day, by endpoint name. */
  unrecorded: (namespaceId: string) => Promise<ReadonlyMap<string, number>>;
  random: Random;
  logger: Logger;
}

/** Provisions, lists and revokes webhook secrets. @spec Webhook admin API; States: Webhook secret */
export function createWebhookAdmin({
  targets,
  secrets,
  runOnProvision,
  publicUrl,
  pauses,
  unrecorded,
  random,
  logger,
}: WebhookAdminDeps) {
  const urlOf = (
    { pluginId, event, instanceId, namespaceId }: SecretKey,
    namespaceInUrl: boolean,
  ): string => {
    const path = deliveryPath({ pluginId, event, instanceId });
    return `${publicUrl()}${path}${namespaceInUrl ? `?namespace=${encodeURIComponent(namespaceId)}` : ''}`;
  };

  return {
    /**
     * Throws PLUGIN_NOT_FOUND, WEBHOOK_NOT_FOUND; VALIDATION_ERROR for an invalid instance id or given
     * secret; CONFLICT when a generated secret would replace the provider's.
     */
    async provision(key: SecretKey, options: ProvisionOptions) {
      const target = requireForAdmin(key);
      const { auth } = target.webhook;
      if (options.given !== undefined) checkGivenSecret(auth, options.given);
      else if (!options.generate) await refuseReplacement(key, auth);
      const secret = options.given ?? makeSecret(auth, random);
      const { rotated, namespaceInUrl } = await secrets.provision(key, secret, options);
      const url = urlOf(key, namespaceInUrl);
      await callOnProvision(target, { ...key, url, secret, rotated }, options);
      const { requestsPerMinute } = target.webhook.rateLimit;
      return { url, secret: options.given === undefined ? secret : '', rotated, requestsPerMinute };
    },

    /** Paused async webhooks queue accepted deliveries; sync ones answer 503. */
    async pause(key: SecretKey) {
      const { webhook } = requireEndpoint(key);
      await pauses().pause(key);
      return { paused: true as const, holds: webhook.async };
    },

    async resume(key: SecretKey) {
      requireEndpoint(key);
      await pauses().resume(key);
      return { paused: false as const };
    },

    async revoke(key: SecretKey) {
      requireForAdmin(key);
      await secrets.revoke(key);
      return { revoked: true as const };
    },

    /** Lists the webhooks of all plugins, or of one. */
    async list(namespaceId: string, pluginId?: string): Promise<WebhookListItem[]> {
      const [records, sums] = await Promise.all([secrets.list(namespaceId), unrecorded(namespaceId)]);
      const wanted = targets.all().filter(({ plugin }) => pluginId === undefined || plugin.id === pluginId);
      return wanted.map((target) => {
        const { plugin, webhook } = target;
        const own = records.filter(
          (record) => record.pluginId === plugin.id && record.event === webhook.event,
        );
        const base = { namespaceId, pluginId: plugin.id, event: webhook.event as string };
        const names = own.map((record) => endpointName(record));
        const single = own.find((record) => record.instanceId === '');
        return {
          pluginId: plugin.id as PluginId,
          event: webhook.event as EventName,
          multi: webhook.multi,
          paused: pauses().isPaused({ ...base, instanceId: '' }),
          unrecorded: names.reduce((sum, name) => sum + (sums.get(name) ?? 0), 0),
          auth: webhook.auth.type,
          ...(webhook.auth.type === 'provider' ? { provider: webhook.auth.provider } : {}),
          ...stateOf(
            webhook.multi ? own[0] : single,
            urlOf({ ...base, instanceId: '' }, single?.namespaceInUrl ?? false),
          ),
          instances: webhook.multi
            ? own.map((record) => ({
                instanceId: record.instanceId as InstanceId,
                paused: pauses().isPaused({ ...base, instanceId: record.instanceId }),
                ...stateOf(record, urlOf({ ...base, instanceId: record.instanceId }, record.namespaceInUrl)),
              }))
            : [],
        };
      });
    },
  };

  /**
   * Some providers issue the secret themselves: replacing it with a generated one would make every delivery
   * fail with 401 after the 24-hour grace period.
   */
  async function refuseReplacement(key: SecretKey, auth: WebhookAuthConfig): Promise<void> {
    const maker = auth.type === 'provider' ? SECRET_GENERATING_PROVIDERS[auth.provider] : undefined;
    if (!maker || !(await secrets.find(key))) return;
    throw new PlatformError(
      'CONFLICT',
      `Webhook ${describe(key)} has a secret, and ${maker} generates its own secrets: deliveries signed with them would fail after a replacement.`,
      {
        details: {
          hint: `Send the secret that ${maker} shows as "secret" (--secret-stdin), or replace it anyway with "generate": true (--generate).`,
        },
      },
    );
  }

  /** Like `requireForAdmin`, but a missing instance id means all instances. */
  function requireEndpoint(key: SecretKey): DeclaredWebhook {
    const declared = targets.find(key.pluginId, key.event);
    return declared && key.instanceId === '' ? declared : requireForAdmin(key);
  }

  /** As for a delivery, but a missing or unexpected instance id is a client error: 400. */
  function requireForAdmin({ pluginId, event, instanceId }: SecretKey): DeclaredWebhook {
    const declared = targets.find(pluginId, event);
    if (declared && declared.webhook.multi !== (instanceId !== '')) {
      const message = declared.webhook.multi
        ? `Webhook ${pluginId} ${event} has instances: name one as instanceId.`
        : `Webhook ${pluginId} ${event} has no instances: leave instanceId out.`;
      throw new PlatformError('VALIDATION_ERROR', message, {
        details: { issues: [{ path: 'body.instanceId', message }] },
      });
    }
    return targets.require(pluginId, event, instanceId === '' ? undefined : instanceId);
  }

  async function callOnProvision(
    target: DeclaredWebhook,
    provisioned: SecretKey & { url: string; secret: string; rotated: boolean },
    options: ProvisionOptions,
  ): Promise<void> {
    const { onProvision, multi } = target.webhook;
    if (!onProvision) return;
    const { event, namespaceId, instanceId, url, secret, rotated } = provisioned;
    try {
      await runOnProvision(
        target,
        onProvision,
        { event, namespaceId, ...(multi ? { instanceId } : {}), url, secret, rotated },
        options,
      );
    } catch (error) {
      logger.error(`onProvision of ${describe(provisioned)} failed; the secret is kept`, {
        requestId: options.requestId,
        traceId: options.traceId,
        tenantId: namespaceId,
        pluginId: target.plugin.id,
        error,
      });
    }
  }
}
export type WebhookAdmin = ReturnType<typeof createWebhookAdmin>;

function stateOf(record: SecretRecord | undefined, url: string) {
  return {
    provisioned: record !== undefined,
    url,
    rotatedAt: record?.rotatedAt ?? null,
    previousExpiresAt: record?.previousExpiresAt ?? null,
    previousUsedAt: record?.previousUsedAt ?? null,
  };
}

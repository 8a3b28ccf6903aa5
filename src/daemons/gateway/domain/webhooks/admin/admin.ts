import type { WebhookAuthConfig } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';
import { needsNamespaceInUrl } from '../../../../../webhooks/namespace-in-url.ts';
import { providerOf } from '../../../../../webhooks/providers/index.ts';
import { receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import { protectionOf } from '../../../../../webhooks/schemes/index.ts';
import { describeEndpoint } from '../receive/endpoint-name.ts';
import type { ExpectedSecrets } from '../receive/expected-secrets.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import { withUrlToken } from '../receive/url-token.ts';
import type { WebhookUrl } from '../receive/webhook-url.ts';
import { checkedSecret, makeSecret } from '../verify/new-secret.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { WebhookPauses } from './pauses.ts';

export interface ProvisionOptions {
  /** Whether the webhook's URL can contain the namespace. If undefined, the current setting is kept. */
  namespaceInUrl: boolean | undefined;
  /** Secret that the provider generated and that the administrator enters. */
  given?: string | undefined;
  /** Whether a generated secret can replace the secret of a provider that generates secrets itself. */
  generate?: boolean | undefined;
  requestId: string;
  traceId: string;
}

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
  expected: Pick<ExpectedSecrets, 'open'>;
  pauses: WebhookPauses;
  urlOf: WebhookUrl;
  runOnProvision: RunOnProvision;
  random: Random;
  logger: Logger;
}

/** Provisions, pauses and revokes webhooks. @spec Webhook admin API; States: Webhook secret */
export class WebhookAdmin {
  readonly #deps: WebhookAdminDeps;

  constructor(deps: WebhookAdminDeps) {
    this.#deps = deps;
  }

  /**
   * Creates or rotates the secret of a webhook. Throws PLUGIN_NOT_FOUND or WEBHOOK_NOT_FOUND if the webhook is unknown.
   * Throws VALIDATION_ERROR if the instance id or the secret is invalid. Unless `generate` is set, throws CONFLICT if a
   * generated secret would overwrite a secret that the provider issued.
   */
  async provision(key: SecretKey, options: ProvisionOptions) {
    const target = this.#requireForAdmin(key);
    const { auth } = target.webhook;
    if (options.given === undefined && !options.generate) await this.#refuseReplacement(key, auth);
    const secret =
      options.given === undefined ? makeSecret(auth, this.#deps.random) : checkedSecret(auth, options.given);
    const asked = options.namespaceInUrl ?? (await this.#defaultInUrl(key, auth));
    const { rotated, namespaceInUrl } = await this.#deps.secrets.provision(key, secret, {
      namespaceInUrl: asked,
    });
    const url = withUrlToken(this.#deps.urlOf(key, namespaceInUrl), auth, secret);
    await this.#callOnProvision(target, { ...key, url, secret, rotated }, options);
    const { requestsPerMinute } = target.webhook.rateLimit;
    const protects = protectionOf(auth);
    return {
      ...{ url, secret: options.given === undefined ? secret : '', rotated, requestsPerMinute },
      namespaceInUrl,
      ...(protects ? { protects } : {}),
    };
  }

  /**
   * Accepts one secret that the sender hands over within `forMs`. A webhook without a secret gets a random one that is
   * never shown, because its URL needs a record. Throws VALIDATION_ERROR if the sender hands over no secret.
   */
  async expectSecret(key: SecretKey, forMs: number) {
    const { webhook } = this.#requireForAdmin(key);
    if (!receiveRulesOf(webhook).handshakes.some(({ effect }) => effect?.type === 'take-secret'))
      throw new PlatformError(
        'VALIDATION_ERROR',
        `Webhook ${describeEndpoint(key)} takes no secret from its sender: create one with \`svc webhooks provision\`.`,
      );
    const { secrets, random, expected, urlOf } = this.#deps;
    let namespaceInUrl = (await secrets.find(key))?.namespaceInUrl;
    if (namespaceInUrl === undefined) {
      const placeholder = makeSecret(webhook.auth, random);
      const inUrl = needsNamespaceInUrl(webhook.auth);
      ({ namespaceInUrl } = await secrets.provision(key, placeholder, { namespaceInUrl: inUrl }));
    }
    return { url: urlOf(key, namespaceInUrl), expiresAt: await expected.open(key, forMs) };
  }

  /** Pauses a webhook. Async deliveries are then accepted and queued, and sync deliveries get 503. */
  async pause(key: SecretKey) {
    const { webhook } = this.#requireEndpoint(key);
    await this.#deps.pauses.pause(key);
    return { paused: true as const, holds: webhook.async };
  }

  async resume(key: SecretKey) {
    this.#requireEndpoint(key);
    await this.#deps.pauses.resume(key);
    return { paused: false as const };
  }

  async revoke(key: SecretKey) {
    this.#requireForAdmin(key);
    await this.#deps.secrets.revoke(key);
    return { revoked: true as const };
  }

  /**
   * Throws CONFLICT if the webhook has a secret and its provider generates secrets itself. A generated secret would
   * replace the provider's secret. Deliveries would then fail with 401 after the 24-hour grace period.
   */
  async #refuseReplacement(key: SecretKey, auth: WebhookAuthConfig): Promise<void> {
    const provider = auth.type === 'provider' ? providerOf(auth.provider) : undefined;
    const maker = provider?.secretFrom === 'sender' ? provider.name : undefined;
    if (!maker || !(await this.#deps.secrets.find(key))) return;
    throw new PlatformError(
      'CONFLICT',
      `Webhook ${describeEndpoint(key)} has a secret, and ${maker} generates its own secrets: deliveries signed with them would fail after a replacement.`,
      {
        details: {
          hint: `Send the secret that ${maker} shows as "secret" (--secret-stdin), or replace it anyway with "generate": true (--generate).`,
        },
      },
    );
  }

  /** Returns whether a new URL contains the namespace. Returns undefined to keep the setting of an existing secret. */
  async #defaultInUrl(key: SecretKey, auth: WebhookAuthConfig): Promise<boolean | undefined> {
    if (!needsNamespaceInUrl(auth)) return undefined;
    return (await this.#deps.secrets.find(key)) ? undefined : true;
  }

  /** Finds a webhook. Unlike `#requireForAdmin`, accepts a missing instance id, which stands for all instances. */
  #requireEndpoint(key: SecretKey): DeclaredWebhook {
    const declared = this.#deps.targets.find(key.pluginId, key.event);
    return declared && key.instanceId === '' ? declared : this.#requireForAdmin(key);
  }

  /** Finds a webhook like `targets.require`, but throws VALIDATION_ERROR for a missing or unexpected instance id. */
  #requireForAdmin({ pluginId, event, instanceId }: SecretKey): DeclaredWebhook {
    const declared = this.#deps.targets.find(pluginId, event);
    if (declared && declared.webhook.multi !== (instanceId !== '')) {
      const message = declared.webhook.multi
        ? `Webhook ${pluginId} ${event} has instances: name one as instanceId.`
        : `Webhook ${pluginId} ${event} has no instances: leave instanceId out.`;
      throw new PlatformError('VALIDATION_ERROR', message, {
        details: { issues: [{ path: 'body.instanceId', message }] },
      });
    }
    return this.#deps.targets.require(pluginId, event, instanceId === '' ? undefined : instanceId);
  }

  async #callOnProvision(
    target: DeclaredWebhook,
    provisioned: SecretKey & { url: string; secret: string; rotated: boolean },
    options: ProvisionOptions,
  ): Promise<void> {
    const { onProvision, multi } = target.webhook;
    if (!onProvision) return;
    const { event, namespaceId, instanceId, url, secret, rotated } = provisioned;
    try {
      await this.#deps.runOnProvision(
        target,
        onProvision,
        { event, namespaceId, ...(multi ? { instanceId } : {}), url, secret, rotated },
        options,
      );
    } catch (error) {
      this.#deps.logger.error(`onProvision of ${describeEndpoint(provisioned)} failed; the secret is kept`, {
        requestId: options.requestId,
        traceId: options.traceId,
        tenantId: namespaceId,
        pluginId: target.plugin.id,
        error,
      });
    }
  }
}

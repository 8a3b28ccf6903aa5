import {
  type ManifestV3,
  SOURCES_PLUGIN_ID,
  type WebhookHandlerDecl,
} from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';

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

/** Webhooks of sources and of their destinations. */
export interface SourceWebhooks {
  of(key: SecretKey): DeclaredWebhook;
}

type Declared = Map<string, Map<string, DeclaredWebhook>>;

/** Finds the webhooks that loaded plugins declare. @spec Webhook delivery step 1 */
export class WebhookTargets {
  #byPlugin: Declared;
  readonly #sources: SourceWebhooks | undefined;

  constructor(plugins: readonly WebhookPlugin[] = [], sources?: SourceWebhooks) {
    this.#byPlugin = declaredBy(plugins);
    this.#sources = sources;
  }

  /** Replaces all webhooks after a load or reload of plugins. */
  replace(plugins: readonly WebhookPlugin[]): void {
    this.#byPlugin = declaredBy(plugins);
  }

  /**
   * Returns the declared webhook. Throws PLUGIN_NOT_FOUND for an unknown plugin. Throws WEBHOOK_NOT_FOUND for an
   * unknown event, or if the instance id is missing or unexpected.
   */
  require(pluginId: string, event: string, instance: string | undefined): DeclaredWebhook {
    // A trailing slash in the URL yields an empty instance id, which counts as missing.
    const instanceId = instance === '' ? undefined : instance;
    const webhooks = this.#byPlugin.get(pluginId);
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
  }

  isDeclared(pluginId: string, event: string): boolean {
    return this.#byPlugin.get(pluginId)?.has(event) ?? false;
  }

  find(pluginId: string, event: string): DeclaredWebhook | undefined {
    return this.#byPlugin.get(pluginId)?.get(event);
  }

  /** Returns the webhook of a stored delivery, which can be a delivery of a source. */
  of(key: SecretKey): DeclaredWebhook | undefined {
    return this.#isOfSource(key) ? this.#sources!.of(key) : this.find(key.pluginId, key.event);
  }

  /** Returns the webhook of a stored delivery. Throws like `require`. */
  requireOf(key: SecretKey): DeclaredWebhook {
    if (this.#isOfSource(key)) return this.#sources!.of(key);
    return this.require(key.pluginId, key.event, key.instanceId === '' ? undefined : key.instanceId);
  }

  #isOfSource({ pluginId }: SecretKey): boolean {
    return this.#sources !== undefined && pluginId === SOURCES_PLUGIN_ID;
  }

  all(): DeclaredWebhook[] {
    return [...this.#byPlugin.values()].flatMap((webhooks) => [...webhooks.values()]);
  }
}

function declaredBy(plugins: readonly WebhookPlugin[]): Declared {
  return new Map(
    plugins.map((plugin) => [
      plugin.id,
      new Map(plugin.manifest.webhooks.map((webhook) => [webhook.event, { plugin, webhook }])),
    ]),
  );
}

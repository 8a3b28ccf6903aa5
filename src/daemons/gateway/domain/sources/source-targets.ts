import {
  EventName,
  LIMITS,
  ManifestV3,
  SOURCES_PLUGIN_ID,
  type SourceSettings,
  type WebhookAuthConfig,
  WebhookHandlerDecl,
} from '../../../../contracts/index.ts';
import { minutes, seconds } from '../../../../kit/time/duration.ts';
import type { SecretKey } from '../../../../store/ports/index.ts';
import { PROVIDERS, type Provider } from '../../../../webhooks/providers/index.ts';
import type { DeclaredWebhook, WebhookPlugin } from '../webhooks/receive/targets.ts';
import { effectiveSettings } from './destination-settings.ts';
import type { SourceEntry, StoredDestination } from './source-records.ts';
import type { SourceRegistry } from './source-registry.ts';

/** Header in which the token of the URL is passed to the verification. A header of this name that is sent is dropped. */
export const URL_TOKEN_HEADER = 'x-svc-url-token';

/** No handler has this name: SourceCalls runs the deliveries. */
const HANDLER = 'sources#none';
/** Attempts to store the deliveries to all destinations. Only an unavailable store makes them fail. */
const FAN_OUT_RETRY = { maxAttempts: 20, backoff: { initialMs: seconds(1), factor: 2, maxMs: minutes(10) } };

const PLUGIN: WebhookPlugin = {
  id: SOURCES_PLUGIN_ID,
  version: '0.0.0',
  root: '',
  manifest: ManifestV3.parse({ schema: 'svc.plugin/3', id: SOURCES_PLUGIN_ID, version: '0.0.0' }),
};

/** The webhook of a source or destination that was deleted. Its waiting deliveries end with their next attempt. */
const GONE: DeclaredWebhook = {
  plugin: PLUGIN,
  webhook: WebhookHandlerDecl.parse({
    event: 'deleted',
    handler: HANDLER,
    auth: { type: 'secret', header: URL_TOKEN_HEADER },
    async: true,
  }),
};

/** Returns the catalogue's entry of a provider. */
export function catalogueEntry(provider: string | undefined): Provider | undefined {
  return provider === undefined ? undefined : PROVIDERS.find(({ id }) => id === provider);
}

/** Returns whether the URL of a source contains a token, because its sender signs nothing. */
export function hasUrlToken({ provider, auth }: SourceSettings): boolean {
  return auth?.type === 'token' || catalogueEntry(provider)?.secretFrom === 'url';
}

/** Returns the key of a source's secret. */
export function sourceKey(namespaceId: string, name: string, destination = ''): SecretKey {
  return { namespaceId, pluginId: SOURCES_PLUGIN_ID, event: name, instanceId: destination };
}

/** Presents sources and their destinations as webhooks, so that deliveries to them take the same path. */
export class SourceTargets {
  readonly #registry: Pick<SourceRegistry, 'find'>;
  readonly #sources = new WeakMap<SourceEntry, DeclaredWebhook>();
  readonly #destinations = new WeakMap<StoredDestination, DeclaredWebhook>();

  constructor(registry: Pick<SourceRegistry, 'find'>) {
    this.#registry = registry;
  }

  /** Returns the webhook of a source, or undefined if the source does not exist. */
  ofSource(namespaceId: string, name: string): DeclaredWebhook | undefined {
    const entry = this.#registry.find(namespaceId, name);
    return entry && this.#ofEntry(entry);
  }

  /** Returns the webhook of a delivery to a source or destination. Never undefined, so that no delivery waits forever. */
  of({ namespaceId, event, instanceId }: SecretKey): DeclaredWebhook {
    const entry = this.#registry.find(namespaceId, event);
    if (!entry) return GONE;
    if (instanceId === '') return this.#ofEntry(entry);
    const destination = entry.destinations.get(instanceId);
    if (!destination) return GONE;
    const known = this.#destinations.get(destination);
    if (known) return known;
    const target = destinationTarget(entry, destination);
    this.#destinations.set(destination, target);
    return target;
  }

  #ofEntry(entry: SourceEntry): DeclaredWebhook {
    let target = this.#sources.get(entry);
    if (!target) {
      target = sourceTarget(entry);
      this.#sources.set(entry, target);
    }
    return target;
  }
}

function sourceTarget({ source: { name, settings } }: SourceEntry): DeclaredWebhook {
  const provider = catalogueEntry(settings.provider);
  const idempotencyKey = settings.idempotencyKey ?? deliveryIdPlace(provider);
  const webhook = WebhookHandlerDecl.parse({
    event: name,
    handler: HANDLER,
    auth: authOf(settings, provider),
    async: true,
    retry: FAN_OUT_RETRY,
    rateLimit: { requestsPerMinute: settings.requestsPerMinute ?? LIMITS.webhookRequestsPerMinute },
    ...bodyRulesOf(settings, provider),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...answersOf(provider),
  });
  return { plugin: PLUGIN, webhook };
}

/** Returns how bodies are read: as declared, or else as the provider's entry says. */
function bodyRulesOf(settings: SourceSettings, provider: Provider | undefined): Record<string, unknown> {
  const { body = provider?.body, contentTypes = provider?.contentTypes } = settings;
  return {
    ...(body === undefined ? {} : { body }),
    ...(contentTypes === undefined ? {} : { contentTypes }),
    ...(provider?.jsonField === undefined ? {} : { jsonField: provider.jsonField }),
  };
}

/**
 * Returns what the provider's entry says about answers. It is declared, because `auth` does not name the provider if the
 * URL contains a token, and because `auth` alone does not change the answers of providers such as Slack.
 */
function answersOf(provider: Provider | undefined): Record<string, unknown> {
  const { handshakes, accepted } = provider ?? {};
  return { ...(handshakes ? { handshakes } : {}), ...(accepted ? { accepted } : {}) };
}

function authOf(settings: SourceSettings, provider: Provider | undefined): WebhookAuthConfig {
  const { auth } = settings;
  if (!hasUrlToken(settings))
    return provider ? { type: 'provider', provider: provider.id } : (auth as WebhookAuthConfig);
  const ipAllow = auth?.ipAllow ?? (provider?.ipAllow as string[] | undefined);
  return { type: 'secret', header: URL_TOKEN_HEADER, ...(ipAllow ? { ipAllow } : {}) };
}

function deliveryIdPlace(provider: Provider | undefined): string | undefined {
  const place = provider?.deliveryId;
  return place?.header === undefined ? place?.field : `header:${place.header}`;
}

function destinationTarget({ source }: SourceEntry, { settings }: StoredDestination): DeclaredWebhook {
  const { retry, concurrency, timeoutMs } = effectiveSettings(settings);
  const webhook = WebhookHandlerDecl.parse({
    event: EventName.parse(source.name),
    handler: HANDLER,
    auth: { type: 'secret', header: URL_TOKEN_HEADER },
    async: true,
    multi: true,
    retry,
    concurrency,
    timeoutMs,
    ...bodyRulesOf(source.settings, catalogueEntry(source.settings.provider)),
    ...(settings.orderBy === null ? {} : { orderBy: settings.orderBy }),
  });
  return { plugin: PLUGIN, webhook };
}

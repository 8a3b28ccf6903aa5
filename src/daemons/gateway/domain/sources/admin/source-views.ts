import type { Destination, DestinationCounts, Source } from '../../../../../contracts/index.ts';
import type { SecretRecord } from '../../../../../store/ports/index.ts';
import type { WebhookPauses } from '../../webhooks/admin/pauses.ts';
import { effectiveSettings } from '../destination-settings.ts';
import type { SourceEntry, StoredDestination } from '../source-records.ts';
import { catalogueEntry, hasUrlToken, sourceKey } from '../source-targets.ts';

const NO_COUNTS: DestinationCounts = {
  accepted: 0,
  retrying: 0,
  succeeded: 0,
  failed: 0,
  dead: 0,
  filtered: 0,
};

export interface SourceViewsDeps {
  pauses: Pick<WebhookPauses, 'isPaused'>;
  /** Base URL that senders reach, without a slash at its end. */
  baseUrl: () => string;
}

/** Builds the replies about sources. Tokens and secrets are not part of them. */
export class SourceViews {
  readonly #deps: SourceViewsDeps;

  constructor(deps: SourceViewsDeps) {
    this.#deps = deps;
  }

  /** Returns the URL for the sender, with the token if one is given. */
  urlOf({ source: { namespaceId, name, settings } }: SourceEntry, token = '…'): string {
    const path = `/in/${encodeURIComponent(namespaceId)}/${encodeURIComponent(name)}`;
    return `${this.#deps.baseUrl()}${path}${hasUrlToken(settings) ? `/${token}` : ''}`;
  }

  ofSource(
    entry: SourceEntry,
    secret: SecretRecord | undefined,
    counts?: ReadonlyMap<string, DestinationCounts>,
  ): Source {
    const { source, destinations, isDeclared } = entry;
    const { namespaceId, name, settings, createdAt } = source;
    return {
      name,
      description: settings.description ?? null,
      provider: settings.provider ?? null,
      auth: hasUrlToken(settings) ? 'token' : (settings.auth?.type ?? 'provider'),
      url: this.urlOf(entry),
      protects: catalogueEntry(settings.provider)?.protects ?? null,
      provisioned: secret !== undefined,
      rotatedAt: secret?.rotatedAt ?? null,
      paused: this.#deps.pauses.isPaused(sourceKey(namespaceId, name)),
      declared: isDeclared,
      createdAt: isDeclared ? null : createdAt,
      destinations: [...destinations.values()].map((destination) => ({
        ...this.ofDestination(entry, destination),
        ...(counts ? { counts: counts.get(destination.name) ?? NO_COUNTS } : {}),
      })),
    };
  }

  ofDestination({ source }: SourceEntry, { name, settings }: StoredDestination): Destination {
    const { forward } = settings;
    return {
      name,
      ...settings,
      ...(forward === undefined ? {} : { forward: shownUrl(forward) }),
      ...effectiveSettings(settings),
      paused: this.#deps.pauses.isPaused(sourceKey(source.namespaceId, source.name, name)),
    };
  }
}

/** Returns a URL without the values of its query, which can contain tokens. */
function shownUrl(url: string): string {
  const mark = url.indexOf('?');
  return mark === -1 ? url : `${url.slice(0, mark)}?…`;
}

import { createHash, timingSafeEqual } from 'node:crypto';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { hasHandshake } from '../../../../webhooks/handshakes/match.ts';
import { receiveRulesOf } from '../../../../webhooks/receive-rules.ts';
import type { DeclaredWebhook } from '../webhooks/receive/targets.ts';
import type { WebhookSecrets } from '../webhooks/verify/secrets.ts';
import type { SourceRegistry } from './source-registry.ts';
import { hasUrlToken, type SourceTargets, sourceKey } from './source-targets.ts';

export interface SourceArrivalsDeps {
  registry: Pick<SourceRegistry, 'find'>;
  targets: Pick<SourceTargets, 'ofSource'>;
  secrets: Pick<WebhookSecrets, 'find'>;
}

const NO_DIGEST = Buffer.alloc(32);

/** Finds the source of a URL. Unknown namespaces, unknown sources and wrong tokens are answered alike. */
export class SourceArrivals {
  readonly #deps: SourceArrivalsDeps;

  constructor(deps: SourceArrivalsDeps) {
    this.#deps = deps;
  }

  /** Returns whether a source declares a handshake with this method. */
  takesHandshake(namespaceId: string, name: string, method: string): boolean {
    const target = this.#deps.targets.ofSource(namespaceId, name);
    return target !== undefined && hasHandshake(receiveRulesOf(target.webhook).handshakes, method);
  }

  /** Throws NOT_FOUND if the URL belongs to no source. */
  async require(namespaceId: string, name: string, token: string | undefined): Promise<DeclaredWebhook> {
    const { registry, targets, secrets } = this.#deps;
    const entry = registry.find(namespaceId, name);
    const keys = entry ? await secrets.find(sourceKey(namespaceId, name)) : undefined;
    const digest = createHash('sha256')
      .update(token ?? '')
      .digest();
    // Both comparisons always run, so that the time does not show which sources exist.
    const isCurrent = timingSafeEqual(digest, keys?.current.digest ?? NO_DIGEST);
    const isPrevious = timingSafeEqual(digest, keys?.previous?.digest ?? NO_DIGEST);
    const needsToken = entry !== undefined && hasUrlToken(entry.source.settings);
    const isKnown = needsToken ? isCurrent || isPrevious : token === undefined;
    const target = isKnown ? targets.ofSource(namespaceId, name) : undefined;
    if (target) return target;
    throw new PlatformError('NOT_FOUND', 'No source receives deliveries at this URL.');
  }
}

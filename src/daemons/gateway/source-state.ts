import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ChangeFeed } from '../membership/change-feed.ts';
import { declaredSources } from './domain/sources/declared-sources.ts';
import { SealedHeaders } from './domain/sources/sealed-headers.ts';
import { SourceExpressions } from './domain/sources/source-expressions.ts';
import { SourceRegistry } from './domain/sources/source-registry.ts';
import { SourceTargets } from './domain/sources/source-targets.ts';
import type { RecordSeal } from './domain/webhooks/verify/record-seal.ts';

/** Opens the sources before the webhooks, because their deliveries need no plugin. */
export async function openSources(
  { config }: Pick<Resources, 'config'>,
  { cache }: Pick<GatewayStore, 'cache'>,
  feed: ChangeFeed,
  seal: RecordSeal,
) {
  const declared = declaredSources(config.sources);
  const registry = await SourceRegistry.open({ cache, feed, declared: declared.map(({ entry }) => entry) });
  return {
    registry,
    declared,
    targets: new SourceTargets(registry),
    expressions: new SourceExpressions(),
    sealedHeaders: new SealedHeaders(seal),
  };
}

import { createSeal } from '../../kit/security/keys.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ChangeFeed } from '../membership/change-feed.ts';
import type { AuditLog } from './domain/audit/audit-log.ts';
import { WebhookListing } from './domain/webhooks/admin/listing.ts';
import { WebhookPauses } from './domain/webhooks/admin/pauses.ts';
import { BacklogSignal } from './domain/webhooks/dispatch/backlog-signal.ts';
import { NeededServices } from './domain/webhooks/dispatch/needed-services.ts';
import { ServiceUse } from './domain/webhooks/dispatch/service-use.ts';
import { ExpectedSecrets } from './domain/webhooks/receive/expected-secrets.ts';
import { RefusalSamples } from './domain/webhooks/receive/refusal-samples.ts';
import { WebhookTargets } from './domain/webhooks/receive/targets.ts';
import { createWebhookUrl } from './domain/webhooks/receive/webhook-url.ts';
import { RefusedRequests } from './domain/webhooks/refused/refused-requests.ts';
import { RecordSeal } from './domain/webhooks/verify/record-seal.ts';
import { WebhookSecrets } from './domain/webhooks/verify/secrets.ts';
import { unrecordedCounter } from './metrics.ts';
import { openSources } from './source-state.ts';

/**
 * Webhook services that need no plugin code. These services open before the plugins, because plugins can list their
 * webhooks at start.
 */
export type WebhookState = Awaited<ReturnType<typeof openWebhookState>>;

export async function openWebhookState(
  resources: Resources,
  { store, feed, audit }: { store: GatewayStore; feed: ChangeFeed; audit: AuditLog },
  stack: AsyncDisposableStack,
) {
  const { config, clock, logger, keys, random, metrics, address, peers } = resources;
  const { cache } = store;
  const seal = createSeal(keys.masterKey, keys.previousMasterKeys);
  const recordSeal = await RecordSeal.create({
    ...{ store: store.secrets, seal, random, clock, logger },
    ...{ masterKey: keys.masterKey, previousMasterKeys: keys.previousMasterKeys ?? [] },
  });
  const sources = await openSources(resources, store, feed, recordSeal);
  const targets = new WebhookTargets([], sources.targets);
  const use = new ServiceUse();
  const backlog = new BacklogSignal();
  const secrets = new WebhookSecrets({
    store: store.secrets,
    seal,
    clock,
    logger,
    feed,
  });
  const expected = new ExpectedSecrets({ secrets, audit, cache, clock, logger });
  const pauses = await WebhookPauses.open({ cache, feed, onResume: () => backlog.notify() });
  const services = stack.adopt(
    new NeededServices({ peers, use, logger, onBack: () => backlog.notify() }),
    (made) => made.close(),
  );
  const refusals = new RefusalSamples({
    ...{ cache, clock, logger },
    observeUnrecorded: unrecordedCounter(metrics),
  });
  const refusedRequests = new RefusedRequests({
    ...{ store: store.refusedRequests, seal: recordSeal, clock, logger },
    isOn: config.webhooks.keepRefused,
    deliveriesMaxBytes: config.retention.deliveriesMaxBytes,
  });
  const urlOf = createWebhookUrl(config.gateway.publicUrl, address);
  const listing = new WebhookListing({ targets, secrets, pauses, samples: refusals, urlOf });
  return {
    ...{ sources, targets, use, backlog, secrets, expected, pauses, services },
    ...{ refusals, refusedRequests, urlOf, listing },
  };
}

import { SOURCES_PLUGIN_ID } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { every } from '../../kit/time/clock.ts';
import { hours } from '../../kit/time/duration.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { Membership } from '../membership/membership.ts';
import { objectAccess } from '../plugin-runtime/access/adapters.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { followPlugins, type SharedPlugins } from '../plugin-runtime/shared/open-shared-plugins.ts';
import type { Queues } from './domain/queues/queues.ts';
import { WebhookAdmin } from './domain/webhooks/admin/admin.ts';
import { WebhookDeliveries } from './domain/webhooks/admin/deliveries.ts';
import { Replays } from './domain/webhooks/admin/replays.ts';
import { WebhookRotations } from './domain/webhooks/admin/rotation.ts';
import { WebhookSamples } from './domain/webhooks/admin/samples.ts';
import { markInterrupted } from './domain/webhooks/dispatch/interrupted.ts';
import { WebhookDelivery } from './domain/webhooks/receive/delivery.ts';
import { callUrl, SubscriptionConfirmations } from './domain/webhooks/receive/subscription-confirmations.ts';
import { DeliveryUploads } from './domain/webhooks/receive/uploads.ts';
import { RefusedReplays } from './domain/webhooks/refused/refused-replays.ts';
import { createResigning } from './domain/webhooks/verify/resigning.ts';
import { createWebhookVerifier } from './domain/webhooks/verify/verifier.ts';
import { deliveryCounter } from './metrics.ts';
import type { OtherProcesses } from './other-processes.ts';
import { SideCalls } from './side-calls.ts';
import { sourceServices } from './source-services.ts';
import { webhookDispatch } from './webhook-dispatch.ts';
import type { WebhookState } from './webhook-state.ts';
import { whenWorkflowsLoaded } from './when-workflows-loaded.ts';

export interface WebhookServicesDeps {
  store: GatewayStore;
  queues: Queues;
  membership: Membership;
  plugins: PluginRuntime;
  /** Undefined with SQLite. */
  shared: SharedPlugins | undefined;
  state: WebhookState;
  otherProcesses: OtherProcesses | undefined;
}

/** Builds the services for webhooks. Throws INVALID_MANIFEST for a webhook without `auth`. */
export async function webhookServices(
  resources: Resources,
  { store, queues, membership, plugins, shared, state, otherProcesses }: WebhookServicesDeps,
  stack: AsyncDisposableStack,
) {
  const { clock, random, logger, metrics, createLimiter } = resources;
  const { publicUrl } = resources.config.gateway;
  const { inbox, cache } = store;
  const { targets, secrets, expected, pauses, services, refusals, refusedRequests, urlOf, listing } = state;
  refuseUnauthenticatedWebhooks(plugins);
  useDeclaredWebhooks(plugins, state);
  const observe = deliveryCounter(metrics);
  const { call, dispatcher, ends, forgetTriggers, requestedAttempts, fanOut } = webhookDispatch(
    { resources, store, queues, plugins, state, membership, observe },
    stack,
  );
  const sideCalls = new SideCalls(plugins, random);
  const rereadHere = async (): Promise<void> => {
    await plugins.upToDate();
    await forgetTriggers();
  };
  async function beforeReport(revision: number): Promise<void> {
    if (shared) await whenWorkflowsLoaded(shared.store.lock, revision);
    await forgetTriggers();
  }
  const { fence } = membership;
  await followPlugins(shared, { runtime: plugins, fence, beforeReport }, stack);
  membership.onEnded(() => markInterrupted({ inbox, logger }));
  const uploads = openUploads(resources, store, stack);
  const confirmations = stack.adopt(new SubscriptionConfirmations({ inbox, logger, callUrl }), (opened) =>
    opened.close(),
  );
  const verifier = createWebhookVerifier({
    ...{ clock, logger, publicUrl },
    runValidator: sideCalls.runValidator,
  });
  const delivery = stack.adopt(
    new WebhookDelivery({
      ...{
        createLimiter,
        targets,
        secrets,
        dispatcher,
        call,
        services,
        pauses,
        inbox,
        ends,
        fence: membership,
      },
      ...{ clock, logger, observe, samples: refusals, refusedRequests, publicUrl },
      verifier,
      ...{ expected, confirmations, uploads },
    }),
    (opened) => opened.close(),
  );
  const refused = new RefusedReplays({
    ...{ inbox, cache, requests: refusedRequests, targets, secrets, dispatcher, uploads, publicUrl },
    ...{ clock, random, logger },
    runValidator: sideCalls.runValidator,
    sealHeaders: ({ pluginId, namespaceId, event }, headers, rawHeaders) =>
      pluginId === SOURCES_PLUGIN_ID
        ? state.sources.sealedHeaders.add(headers, rawHeaders, [namespaceId, event])
        : headers,
  });
  stack.defer(() => refusedRequests.flush());
  const replays = new Replays({ inbox, cache, targets, dispatcher, uploads, refused, clock, random });
  return {
    ...(await sourceServices({ resources, store, state, replays, fanOut })),
    rereadHere,
    reread: async () => {
      await Promise.all([rereadHere(), otherProcesses?.reread()]);
    },
    dispatcher,
    requestedAttempts,
    delivery,
    tailedInbox: inbox,
    resign: createResigning(targets, secrets, clock),
    deliveries: new WebhookDeliveries({ inbox, refusedRequests, targets, clock }),
    replays,
    refusedReplays: refused,
    samples: new WebhookSamples({ targets, secrets, delivery, clock, random, publicUrl }),
    webhookListing: listing,
    webhookRotations: new WebhookRotations({ inbox, secrets, targets }),
    webhookAdmin: new WebhookAdmin({
      ...{ targets, secrets, expected, pauses, urlOf, random, logger },
      runOnProvision: sideCalls.runOnProvision,
    }),
  };
}

/** Opens the storage of uploaded files, and deletes the files of pruned deliveries every hour. */
function openUploads(
  resources: Resources,
  { inbox, cache }: GatewayStore,
  stack: AsyncDisposableStack,
): DeliveryUploads {
  const { clock, logger } = resources;
  const uploads = new DeliveryUploads({ objects: objectAccess(resources), cache, inbox, clock, logger });
  stack.defer(every(clock, hours(1), () => void uploads.sweep()));
  return uploads;
}

/**
 * Updates the list of declared webhooks after each plugin reload. Then runs the deliveries that waited for their
 * plugin.
 */
function useDeclaredWebhooks(plugins: PluginRuntime, { targets, use, backlog }: WebhookState): void {
  targets.replace(plugins.registry.plugins);
  plugins.onReload((registry) => {
    targets.replace(registry.plugins);
    use.forget();
    backlog.notify();
  });
}

/**
 * Throws for webhooks without `auth`, so that no endpoint runs without sender authentication by mistake.
 * @spec Webhook declaration: auth
 */
function refuseUnauthenticatedWebhooks({ registry }: PluginRuntime): void {
  const faults = registry.broken.flatMap(({ id, folder, faults }) =>
    faults
      .filter(({ refusesGatewayStart }) => refusesGatewayStart)
      .map((fault) => ({ ...fault, plugin: id ?? folder })),
  );
  if (faults.length === 0) return;
  const list = faults.map(({ plugin, path, message }) => `${plugin}: ${path} ${message}`).join('; ');
  throw new PlatformError(
    'INVALID_MANIFEST',
    `The gateway does not start with a webhook that would accept unauthenticated deliveries. ${list}. Declare its "auth" in the plugin's manifest (docs/webhooks.md), or remove the plugin.`,
    {
      details: { faults },
    },
  );
}

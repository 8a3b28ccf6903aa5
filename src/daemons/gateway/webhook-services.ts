import { type CommandResult, HandlerRef, type ValidatorHostContext } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { createSeal } from '../../kit/security/keys.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { createReread } from '../plugin-runtime/reread.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { createWebhookAdmin } from './domain/webhooks/admin/admin.ts';
import { createWebhookDeliveries } from './domain/webhooks/admin/deliveries.ts';
import { createWebhookPauses, type WebhookPauses } from './domain/webhooks/admin/pauses.ts';
import { createWebhookSamples } from './domain/webhooks/admin/samples.ts';
import {
  InboxDispatcher,
  type WebhookDispatcher,
  type WebhookDispatcherDeps,
} from './domain/webhooks/dispatch/dispatcher.ts';
import { type CallHandler, createHandlerCall } from './domain/webhooks/dispatch/handler-call.ts';
import { markInterrupted, watchInterrupted } from './domain/webhooks/dispatch/interrupted.ts';
import { NeededServices } from './domain/webhooks/dispatch/needed-services.ts';
import type { ServiceUse } from './domain/webhooks/dispatch/service-use.ts';
import { createSiblingDispatcher, serveSiblings } from './domain/webhooks/dispatch/sibling-dispatcher.ts';
import { createWebhookDelivery } from './domain/webhooks/receive/delivery.ts';
import { RefusalSamples } from './domain/webhooks/receive/refusal-samples.ts';
import { createWebhookTargets, type DeclaredWebhook } from './domain/webhooks/receive/targets.ts';
import { createResigning } from './domain/webhooks/verify/resigning.ts';
import { createWebhookSecrets } from './domain/webhooks/verify/secrets.ts';
import { createWebhookVerifier } from './domain/webhooks/verify/verifier.ts';
import { deliveryCounter, unrecordedCounter } from './metrics.ts';
import { withWorkflows } from './workflow-starts.ts';

/** Time limit of validators and `onProvision` handlers: a sender or an administrator waits for them. */
const SIDE_CALL_TIMEOUT_MS = 10_000;
/** Host context of an `onProvision` handler, which has no delivery. */
const NO_REQUEST = { source: 'platform', method: 'POST', path: '', query: {}, headers: {} };

/**
 * Builds the webhook parts on the gateway's store and plugins. Throws INVALID_MANIFEST for a webhook without
 * `auth`.
 */
export async function webhookServices(
  resources: Resources,
  store: GatewayStore,
  plugins: PluginRuntime,
  use: ServiceUse,
) {
  const { config, clock, random, logger, keys, metrics, address, group, createLimiter, peers } = resources;
  refuseUnauthenticatedWebhooks(plugins);
  const targets = createWebhookTargets(() => plugins.registry.plugins);
  const secrets = createWebhookSecrets({
    store: store.secrets,
    seal: createSeal(keys.masterKey),
    clock,
    logger,
    shared: group.role !== 'alone',
  });
  const observe = deliveryCounter(metrics);
  const { inbox } = store;
  const callHandler = createHandlerCall(
    ({ inputText, ...request }) =>
      plugins.execute(
        { ...request, handler: HandlerRef.parse(request.handler), params: {}, user: null },
        { inputText },
      ),
    logger,
  );
  const { call: callWithWorkflows, forgetTriggers } = withWorkflows(callHandler, resources, store);
  const call: CallHandler = async (accepted, target, payload, deliveryId) => {
    const handled = await callWithWorkflows(accepted, target, payload, deliveryId);
    // Only the primary sees calls of handlers that run remotely.
    if (handled.succeeded && group.role !== 'sibling') use.noteRun(target.plugin.id);
    return handled;
  };
  const services = new NeededServices({ peers, use, logger, onBack: () => dispatcher.runBacklog() });
  const dispatcher: WebhookDispatcher = createDispatcher(group, {
    services,
    call,
    inbox,
    targets,
    pauses: () => pauses,
    clock,
    random,
    logger,
    observe,
    // Enough to fill the processes of several busy plugins; more deliveries would only queue up in memory.
    concurrency: config.execution.worker.maxProcesses * 4,
  });

  const pauses: WebhookPauses = await createWebhookPauses({
    cache: store.cache,
    clock,
    logger,
    group,
    onResume: () => dispatcher.runBacklog(),
  });
  plugins.onReload(() => use.forget());
  // Deliveries that waited for their plugin may run now.
  plugins.onReload(() => dispatcher.runBacklog());

  /** Calls a handler other than the webhook's own: a validator or `onProvision`. */
  async function callSide(
    { plugin, webhook }: DeclaredWebhook,
    handler: string,
    host: 'validator' | 'webhook',
    input: object,
    context: {
      namespaceId: string;
      requestId: string;
      traceId: string;
      webhookId?: string;
      /** Request fields for the handler's host context. */
      told?: Partial<ValidatorHostContext>;
    },
  ): Promise<unknown> {
    const { namespaceId, requestId, traceId, webhookId = random.uuid(), told = NO_REQUEST } = context;
    const result: CommandResult = await plugins.execute({
      plugin,
      handler,
      host,
      hostContext: { ...told, host, event: webhook.event, namespaceId, webhookId },
      input,
      params: {},
      user: null,
      tenantId: namespaceId,
      requestId,
      traceId,
      timeoutMs: SIDE_CALL_TIMEOUT_MS,
    });
    if (result.exitCode === 0) return result.result;
    throw new PlatformError('EXECUTION_ERROR', result.error?.message ?? `Exit code ${result.exitCode}`);
  }

  const verifier = createWebhookVerifier(
    (target, validator, input, { namespaceId, webhookId, instanceId, incoming, request }) => {
      const { requestId, traceId, source } = incoming;
      const instance = target.webhook.multi ? { instanceId } : {};
      const told = { source, ...instance, ...request };
      return callSide(target, validator, 'validator', input, {
        ...{ namespaceId, webhookId, requestId, traceId, told },
      });
    },
    clock,
    logger,
  );
  if (group.role !== 'sibling') await markInterrupted({ inbox, logger });
  const inFlight = group.role === 'alone' ? undefined : new Set<string>();
  if (inFlight) watchInterrupted(group, inFlight, { inbox, clock, logger });
  const samples = new RefusalSamples({
    ...{ cache: store.cache, clock, logger },
    observeUnrecorded: unrecordedCounter(metrics),
  });
  const delivery = createWebhookDelivery({
    createLimiter,
    inFlight,
    targets,
    secrets,
    verifier,
    dispatcher,
    call,
    services,
    pauses: () => pauses,
    inbox,
    clock,
    logger,
    observe,
    samples,
  });
  return {
    reread: createReread(plugins, group, forgetTriggers),
    dispatcher,
    stopProbes: () => services.close(),
    delivery,
    pauses,
    tailedInbox: inbox,
    resign: createResigning(targets, secrets, clock),
    deliveries: createWebhookDeliveries({
      inbox,
      cache: store.cache,
      targets,
      dispatcher,
      clock,
      random,
    }),
    samples: createWebhookSamples({ targets, secrets, delivery, clock, random }),
    webhookAdmin: createWebhookAdmin({
      targets,
      secrets,
      pauses: () => pauses,
      unrecorded: (namespaceId) => samples.sums(namespaceId),
      random,
      logger,
      publicUrl: () => (config.gateway.publicUrl ?? `http://localhost:${address.port}`).replace(/\/+$/, ''),
      runOnProvision: (target, handler, input, options) =>
        callSide(target, handler, 'webhook', input, { ...options, namespaceId: input.namespaceId }),
    }),
  };
}

/** Only the primary runs accepted deliveries. */
function createDispatcher(group: ProcessGroup, deps: WebhookDispatcherDeps): WebhookDispatcher {
  if (group.role === 'sibling') return createSiblingDispatcher(group);
  const dispatcher = new InboxDispatcher(deps);
  if (group.role === 'primary') serveSiblings(group, dispatcher);
  return dispatcher;
}

/** An endpoint without sender authentication must not run by accident. @spec Webhook declaration: auth */
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

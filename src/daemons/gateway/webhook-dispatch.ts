import { HandlerRef, SOURCES_PLUGIN_ID } from '../../contracts/index.ts';
import { createDeadlines } from '../../kit/time/deadlines.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { Membership } from '../membership/membership.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import type { Queues } from './domain/queues/queues.ts';
import { Attempts } from './domain/webhooks/dispatch/attempts.ts';
import { DeliveryEnds } from './domain/webhooks/dispatch/delivery-ends.ts';
import { InboxDispatcher, type WebhookDispatcherDeps } from './domain/webhooks/dispatch/dispatcher.ts';
import { createGatewayCalls } from './domain/webhooks/dispatch/gateway-calls.ts';
import { type CallHandler, createHandlerCall } from './domain/webhooks/dispatch/handler-call.ts';
import { LeaderDispatcher } from './domain/webhooks/dispatch/leader-dispatcher.ts';
import { LeaderNotice } from './domain/webhooks/dispatch/leader-notice.ts';
import { OtherGateways } from './domain/webhooks/dispatch/other-gateways.ts';
import { RequestedAttempts } from './domain/webhooks/dispatch/requested-attempts.ts';
import type { WebhookDispatcher } from './domain/webhooks/dispatch/webhook-dispatcher.ts';
import { sourceDispatch } from './source-services.ts';
import type { WebhookState } from './webhook-state.ts';
import { withWorkflows } from './workflow-starts.ts';

export interface WebhookDispatchDeps {
  resources: Resources;
  store: GatewayStore;
  queues: Queues;
  plugins: PluginRuntime;
  state: WebhookState;
  membership: Membership;
  /** Callback that is called for each finished delivery, for metrics. */
  observe: WebhookDispatcherDeps['observe'];
}

/** Builds the dispatcher, which runs the handlers of accepted deliveries. */
export function webhookDispatch(
  { resources, store, queues, plugins, state, membership, observe }: WebhookDispatchDeps,
  stack: AsyncDisposableStack,
) {
  const { config, clock, random, logger } = resources;
  const { targets, use, backlog, pauses, services } = state;
  const callHandler = createHandlerCall(
    ({ inputText, ...request }) =>
      plugins.execute(
        { ...request, handler: HandlerRef.parse(request.handler), params: {}, user: null },
        { inputText },
      ),
    logger,
  );
  const { call: callWithWorkflows, forgetTriggers } = withWorkflows(callHandler, resources, store);
  const { sourceCall, fanOut } = sourceDispatch(
    {
      ...{ resources, store, queues, plugins, state, observe },
      enqueue: (delivery, target, payload) => dispatcher.enqueue(delivery, target, payload),
    },
    stack,
  );
  const call: CallHandler = async (accepted, target, payload, deliveryId, attempt) => {
    if (accepted.pluginId === SOURCES_PLUGIN_ID)
      return sourceCall(accepted, target, payload, deliveryId, attempt);
    const handled = await callWithWorkflows(accepted, target, payload, deliveryId);
    if (handled.succeeded) use.noteRun(target.plugin.id);
    return handled;
  };
  const { inbox } = store;
  const ends = new DeliveryEnds({ inbox, logger });
  const deps = {
    ...{ services, call, inbox, ends, targets, pauses },
    ...{ clock, random, logger, observe },
    // This number of concurrent deliveries keeps the processes of several plugins busy. Further deliveries would only
    // wait in memory.
    concurrency: config.execution.worker.maxProcesses * 4,
  };
  const requested = openRequestedAttempts({ membership, deps }, stack);
  const dispatcher = stack.adopt(
    createDispatcher(resources, { members: store.members, membership, deps, requested }, stack),
    (made) => made.close(),
  );
  // Closing the dispatcher waits for running attempts, whose outcomes `ends` stores. `ends` is closed first, so that
  // its retries do not delay the shutdown.
  stack.defer(() => ends.close());
  backlog.subscribe(() => dispatcher.runBacklog());
  return { call, dispatcher, ends, forgetTriggers, requestedAttempts: requested, fanOut };
}

interface DispatcherParts {
  membership: Membership;
  deps: WebhookDispatcherDeps & { services: WebhookState['services'] };
}

/**
 * Returns the dispatcher of this process. If several processes share the store, only one of them, the leader, schedules
 * the accepted deliveries.
 */
function createDispatcher(
  { sharesStore, keys, logger }: Resources,
  {
    members,
    membership,
    deps,
    requested,
  }: DispatcherParts & { requested: RequestedAttempts } & Pick<GatewayStore, 'members'>,
  stack: AsyncDisposableStack,
): WebhookDispatcher {
  if (!sharesStore) return new InboxDispatcher(deps);
  const { inbox, clock, concurrency } = deps;
  const calls = stack.adopt(createGatewayCalls(keys.internalSecret), (opened) => opened.close());
  const others = new OtherGateways({
    ...{ members, fence: membership, own: requested, calls, inbox, concurrency, clock, logger },
  });
  const local = new InboxDispatcher({ ...deps, others, mayStart: () => membership.isHeld });
  const notice = new LeaderNotice(calls);
  return new LeaderDispatcher({ members, membership, logger, others, notice, dispatcher: local });
}

/** Returns the service that runs attempts for the gateway that schedules deliveries. */
function openRequestedAttempts(
  { membership, deps }: DispatcherParts,
  stack: AsyncDisposableStack,
): RequestedAttempts {
  const { inbox, targets, services, clock } = deps;
  const attempts = new Attempts({ ...deps, deadlines: createDeadlines(clock) });
  const requested = new RequestedAttempts({ attempts, inbox, targets, services, membership });
  return stack.adopt(requested, (opened) => opened.close());
}

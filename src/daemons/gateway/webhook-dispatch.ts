import { HandlerRef } from '../../contracts/index.ts';
import type { GatewayStore, MemberStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { Membership } from '../membership/membership.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import {
  InboxDispatcher,
  type WebhookDispatcher,
  type WebhookDispatcherDeps,
} from './domain/webhooks/dispatch/dispatcher.ts';
import { type CallHandler, createHandlerCall } from './domain/webhooks/dispatch/handler-call.ts';
import { LeaderDispatcher } from './domain/webhooks/dispatch/leader-dispatcher.ts';
import { createSiblingDispatcher, serveSiblings } from './domain/webhooks/dispatch/sibling-dispatcher.ts';
import type { WebhookState } from './webhook-state.ts';
import { withWorkflows } from './workflow-starts.ts';

export interface WebhookDispatchDeps {
  resources: Resources;
  store: GatewayStore;
  plugins: PluginRuntime;
  state: WebhookState;
  /** Membership of this process, if the store has members. */
  membership: Membership | undefined;
  /** Called for each finished delivery, to count it. */
  observe: WebhookDispatcherDeps['observe'];
}

/** Builds the dispatcher, which runs the handlers of accepted deliveries. */
export function webhookDispatch(
  { resources, store, plugins, state, membership, observe }: WebhookDispatchDeps,
  stack: AsyncDisposableStack,
) {
  const { config, clock, random, logger, group } = resources;
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
  const call: CallHandler = async (accepted, target, payload, deliveryId) => {
    const handled = await callWithWorkflows(accepted, target, payload, deliveryId);
    // Siblings do not see the calls that remote handlers make, so only the primary counts their runs.
    if (handled.succeeded && group.role !== 'sibling') use.noteRun(target.plugin.id);
    return handled;
  };
  const dispatcher = stack.adopt(
    createDispatcher(
      resources,
      { members: store.members, membership },
      {
        ...{ services, call, inbox: store.inbox, targets, pauses },
        ...{ clock, random, logger, observe },
        // This is enough for the processes of several busy plugins. Further deliveries would only wait in memory.
        concurrency: config.execution.worker.maxProcesses * 4,
      },
    ),
    (made) => made.close(),
  );
  backlog.subscribe(() => dispatcher.runBacklog());
  return { call, dispatcher, forgetTriggers };
}

/** Returns the dispatcher of this process. Of all processes that share the store, only one runs accepted deliveries. */
function createDispatcher(
  { group, sharesStore, logger }: Resources,
  { members, membership }: { members: MemberStore; membership: Membership | undefined },
  deps: WebhookDispatcherDeps,
): WebhookDispatcher {
  if (group.role === 'sibling') return createSiblingDispatcher(group);
  const dispatcher =
    sharesStore && membership
      ? new LeaderDispatcher({
          ...{ members, membership, logger },
          dispatcher: new InboxDispatcher({ ...deps, mayStart: () => membership.isHeld }),
        })
      : new InboxDispatcher(deps);
  if (group.role === 'primary') serveSiblings(group, dispatcher);
  return dispatcher;
}

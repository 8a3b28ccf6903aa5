import { createSeal } from '../../kit/security/keys.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ChangeFeed } from '../membership/change-feed.ts';
import type { Membership } from '../membership/membership.ts';
import { MessageClient } from '../outgoing/message-client.ts';
import type { EventTypes } from './domain/event-types/event-types.ts';
import { EndpointEnds } from './domain/messages/dispatch/endpoint-ends.ts';
import { MessageDispatcher } from './domain/messages/dispatch/message-dispatcher.ts';
import { MessageLeader } from './domain/messages/dispatch/message-leader.ts';
import { EndpointAdmin } from './domain/messages/endpoint-admin.ts';
import { EndpointRegistry } from './domain/messages/endpoint-registry.ts';
import { MessageLists } from './domain/messages/message-lists.ts';
import { MessageReplays } from './domain/messages/message-replays.ts';
import { MessageSender } from './domain/messages/message-sender.ts';
import { Publisher } from './domain/messages/publisher.ts';
import { SortableIds, timeOfId } from './domain/messages/sortable-ids.ts';
import { TestSends } from './domain/messages/test-sends.ts';
import { createMessageGauges, messageCounters } from './message-metrics.ts';

const MAX_COUNTED = 100_000;
const USER_AGENT = 'svc-webhooks/1';

export interface MessageServicesDeps {
  store: GatewayStore;
  feed: ChangeFeed;
  membership: Membership;
  eventTypes: Pick<EventTypes, 'check'>;
}

/** Builds the publishing of messages, their dispatcher, and the API of endpoints. @spec docs/messages.md */
export async function messageServices(
  resources: Resources,
  { store, feed, membership, eventTypes }: MessageServicesDeps,
  stack: AsyncDisposableStack,
) {
  const { config, profile, keys, clock, random, logger, metrics, sharesStore = false } = resources;
  const { endpoints, messages } = store;
  const seal = createSeal(keys.masterKey, keys.previousMasterKeys);
  const registry = await EndpointRegistry.open({ store: endpoints, feed, seal, logger });
  const rules = { ...config.outgoing, requireHttps: profile === 'production' };
  const client = stack.adopt(new MessageClient(rules), (opened) => opened.close());
  const sender = new MessageSender({ client, clock, userAgent: USER_AGENT });
  const count = messageCounters(metrics);
  const endpointEnds = stack.adopt(
    new EndpointEnds({ endpoints, messages, registry, clock, logger }),
    (opened) => opened.close(),
  );
  const publishing = new Set<string>();
  const dispatcher = stack.adopt(
    new MessageDispatcher({
      ...{ store: messages, registry, sender, endpointEnds, clock, random, logger },
      isShared: sharesStore,
      mayStart: () => membership.isHeld,
      isPublishing: (id) => publishing.has(id),
      observe: count.attempt,
    }),
    (opened) => opened.close(),
  );
  const messageLeader = stack.adopt(
    new MessageLeader({ dispatcher, members: store.members, membership, isShared: sharesStore, logger }),
    (opened) => opened.close(),
  );
  const ids = new SortableIds(clock, random);
  const publisher = new Publisher({
    ...{ store: messages, registry, ids, clock, publishing },
    validateType: (type, data) => eventTypes.check(type, data),
    accept: (content, endpointIds) => dispatcher.accept(content, endpointIds),
    count: count.accepted,
  });
  const endpointAdmin = new EndpointAdmin({
    store: endpoints,
    messages,
    registry,
    client,
    ids,
    seal,
    random,
    clock,
  });
  const messageLists = new MessageLists(messages, registry);
  const messageReplays = new MessageReplays({
    ...{ store: messages, registry, endpoints: endpointAdmin, lists: messageLists, clock },
    replayed: (deliveries) => dispatcher.replayed(deliveries),
  });
  const testSends = new TestSends({
    store: messages,
    endpoints: endpointAdmin,
    registry,
    sender,
    ids,
    clock,
  });
  addGauges(resources, store, dispatcher);
  return {
    ...{ publisher, endpointAdmin, endpointRegistry: registry },
    ...{ messageLists, messageReplays, testSends, messageDispatcher: dispatcher, messageLeader },
  };
}

function addGauges(
  { metrics, clock, portShare }: Resources,
  { messages }: GatewayStore,
  dispatcher: MessageDispatcher,
): void {
  // The processes of a node share their messages, and their metrics are added up.
  const isFirst = portShare === undefined || portShare.number === 1;
  createMessageGauges(metrics, {
    waiting: async () => (isFirst ? messages.countUnfinished(MAX_COUNTED) : 0),
    async oldest() {
      const work = isFirst ? await messages.work() : [];
      const times = work.flatMap(({ oldestWaiting }) =>
        oldestWaiting === null ? [] : timeOfId(oldestWaiting),
      );
      return times.length === 0 ? null : Math.min(...times);
    },
    inFlight: () => dispatcher.inFlight,
    now: () => clock.now(),
  });
}

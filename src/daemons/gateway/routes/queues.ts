import {
  ackItems,
  configureQueue,
  deleteItem,
  extendLeases,
  getQueue,
  getQueueItem,
  leaseItems,
  listQueueItems,
  listQueues,
  nackItems,
  purgeQueue,
  putItem,
  retryDeadItems,
  retryItem,
} from '../../../contracts/index.ts';
import { abortOnDisconnect, type Http, mount } from '../../../http/index.ts';
import type { Random } from '../../../kit/security/random.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { QueueKey } from '../../../store/ports/index.ts';
import { contentOf } from '../domain/queues/queue-content.ts';
import type { QueueItems } from '../domain/queues/queue-items.ts';
import type { QueueWaits } from '../domain/queues/queue-waits.ts';
import type { Queues } from '../domain/queues/queues.ts';

export interface QueueRouteServices {
  queues: Queues;
  queueItems: QueueItems;
  queueWaits: QueueWaits;
  queueSources: { clock: Clock; random: Random };
}

const LISTS_PER_MINUTE = 600;
const caller = { auth: 'caller' } as const;
const reading = { auth: 'caller', perMinute: LISTS_PER_MINUTE } as const;

/** @spec docs/queues.md */
export function queueRoutes(http: Http, services: QueueRouteServices): void {
  const { queues, queueItems: items } = services;
  leaseRoutes(http, services);
  mount(http, listQueues, reading, async (call) => ({
    items: await queues.list(call.caller.namespaceId),
    nextCursor: null,
  }));
  mount(http, getQueue, reading, (call) => queues.get(keyOf(call)));
  mount(http, configureQueue, caller, (call) => queues.configure(keyOf(call), call.body));
  mount(http, listQueueItems, reading, (call) => items.list(keyOf(call), call.query));
  mount(http, getQueueItem, reading, (call) => items.get(keyOf(call), call.params.id));
  mount(http, retryItem, caller, (call) => items.retry(keyOf(call), call.params.id));
  mount(http, retryDeadItems, caller, (call) => items.retryDead(keyOf(call), call.body));
  mount(http, deleteItem, caller, async (call) => {
    await items.remove(keyOf(call), call.params.id);
    return { deleted: true as const };
  });
  mount(http, purgeQueue, caller, (call) => items.purge(keyOf(call), call.query.status));
}

function leaseRoutes(http: Http, { queues, queueWaits, queueSources }: QueueRouteServices): void {
  const { clock, random } = queueSources;
  // A stop does not wait for calls that wait for items.
  http.addHook('preClose', () => queueWaits.close());

  mount(http, leaseItems, caller, async (call) => {
    const { raw, ...lease } = call.body;
    const { signal } = abortOnDisconnect(call.reply);
    const leased = await queues.lease(keyOf(call), lease, signal);
    return {
      items: leased.map(({ headers, body, ...item }) => ({
        ...item,
        ...contentOf({ headers, body }, { raw }),
      })),
    };
  });
  mount(http, ackItems, caller, async (call) => ({
    items: await queues.ack(keyOf(call), call.body.leaseIds),
  }));
  mount(http, nackItems, caller, async (call) => {
    const { leaseIds, delayMs = null, error = null } = call.body;
    return { items: await queues.nack(keyOf(call), leaseIds, { delayMs, error }) };
  });
  mount(http, extendLeases, caller, async (call) => ({
    items: await queues.extend(keyOf(call), call.body.leaseIds, call.body.leaseMs),
  }));
  mount(http, putItem, caller, async (call) => {
    const { id = random.uuid(), body, bodyBase64, headers, orderKey = null, delayMs } = call.body;
    const isJson = bodyBase64 === undefined;
    const added = await queues.put({
      ...keyOf(call),
      ...{ id, deliveryId: null, orderKey, delayMs, receivedAt: clock.now() },
      headers: JSON.stringify(Object.entries({ ...(isJson ? JSON_TYPE : {}), ...headers })),
      body: isJson ? Buffer.from(JSON.stringify(body)) : Buffer.from(bodyBase64, 'base64'),
    });
    return { id, added };
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };

function keyOf(call: { caller: { namespaceId: string }; params: { name: string } }): QueueKey {
  return { namespaceId: call.caller.namespaceId, queue: call.params.name };
}

import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ChangeFeed } from '../membership/change-feed.ts';
import { QueueItems } from './domain/queues/queue-items.ts';
import { QueueRoom } from './domain/queues/queue-room.ts';
import { QueueSettingsCache } from './domain/queues/queue-settings.ts';
import { QueueWaits } from './domain/queues/queue-waits.ts';
import { Queues } from './domain/queues/queues.ts';
import { createQueueGauges, queueEventCounter } from './queue-metrics.ts';

/** Builds the queues that programs lease from. @spec docs/queues.md */
export async function queueServices(
  { config, clock, random, logger, metrics, portShare }: Resources,
  { store: { queues: store }, feed }: { store: GatewayStore; feed: ChangeFeed },
  stack: AsyncDisposableStack,
) {
  const settings = await QueueSettingsCache.open({ store, feed, config: config.queues });
  const queueWaits = stack.adopt(new QueueWaits({ store, clock, logger }), (waits) => waits.close());
  const count = queueEventCounter(metrics);
  const room = new QueueRoom({ store, clock, maxBytes: config.retention.deliveriesMaxBytes });
  const queues = new Queues({ store, settings, waits: queueWaits, room, count, clock, random });
  // The processes of a node share their queues, and their metrics are added up.
  const isFirst = portShare === undefined || portShare.number === 1;
  createQueueGauges(metrics, {
    counts: async () => (isFirst ? store.counts() : []),
    waits: () => queueWaits.waiting,
    now: () => clock.now(),
  });
  const queueItems = new QueueItems({ store, queues, waits: queueWaits, clock });
  return { queues, queueWaits, queueItems, queueSources: { clock, random } };
}

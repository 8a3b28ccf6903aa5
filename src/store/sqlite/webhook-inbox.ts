import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { DeliveryRecord, NewDelivery, WebhookInbox } from '../ports/index.ts';
import type { Database } from './database.ts';
import { deliveryRows } from './delivery-rows.ts';
import { sqliteMarkers } from './markers.ts';
import { createNotebook } from './notebook.ts';

/** What a delivery has before it ends. */
const UNFINISHED = { httpStatus: null, durationMs: null, outcome: null, attempts: 0 } as const;

/** Deliveries and their markers, claimed and written in one transaction. @spec Webhook delivery */
export function sqliteWebhookInbox(db: Database, deps: { clock: Clock; logger: Logger }): WebhookInbox {
  const rows = deliveryRows(db);
  const markers = sqliteMarkers(db, deps.clock);
  const notes = createNotebook({
    ...deps,
    write: (deliveries) => db.write(() => deliveries.forEach(rows.insert)),
  });

  /** The marker decides: whoever finds it taken writes nothing. */
  const insertUnlessTaken = (delivery: DeliveryRecord, take: () => 'begun' | 'pending' | 'done') =>
    db.write(() => {
      const result = take();
      if (result === 'begun') rows.insert(delivery);
      return result;
    });

  return {
    seen: (markerKey, now) => db.read(() => markers.find(markerKey, now)),
    begin: (delivery, marker) =>
      insertUnlessTaken({ ...delivery, ...UNFINISHED, status: 'running', steps: '[]' }, () =>
        markers.claim(marker, 'pending', delivery.webhookId),
      ),
    accept: (delivery, marker, steps) =>
      insertUnlessTaken({ ...delivery, ...UNFINISHED, status: 'accepted', steps }, () =>
        markers.claim(marker, 'done', delivery.webhookId),
      ),
    finish: (webhookId, end, marker) =>
      db.write(() => {
        rows.finish(webhookId, end);
        if (marker) markers.finish(marker.key, marker.expiresAt, webhookId);
      }),
    note: (delivery: NewDelivery, end) => notes.add({ ...delivery, ...end, attempts: 0 }),
    unfinished: (limit, afterWebhookId = '') => db.read(() => rows.unfinished(limit, afterWebhookId)),
    async find(webhookId) {
      await notes.flush();
      return db.read(() => rows.find(webhookId));
    },
    async list(namespaceId, { limit, before }) {
      await notes.flush();
      return db.read(() => rows.list(namespaceId, limit, before));
    },
    prune: ({ receivedBefore, now, limit }) =>
      db.write(() => rows.prune(receivedBefore, limit) + markers.prune(now, limit)),
    flush: () => notes.flush(),
  };
}

import type { QueueItemPage, QueueItemRecord, QueueKey } from './ports/queues.ts';
import { QUEUE_STATE, statusOf } from './queue-rules.ts';

/** A row of a queue item, as both drivers read it. */
export interface QueueItemRow {
  position: number;
  id: string;
  state: number;
  dueAt: number;
  attempt: number;
  orderKey: string | null;
  deliveryId: string | null;
  receivedAt: number;
  lastError: string | null;
  bodyBytes: number;
}

export function recordOf({ namespaceId, queue }: QueueKey, row: QueueItemRow): QueueItemRecord {
  const { position, id, state, dueAt, attempt, orderKey, deliveryId, receivedAt, lastError, bodyBytes } = row;
  const status = statusOf(state);
  const isEnded = status === 'dead' || status === 'acked';
  return {
    ...{ namespaceId, queue, position, id, deliveryId, orderKey, receivedAt, status, attempt },
    availableAt: state === QUEUE_STATE.delayed ? dueAt : null,
    leasedUntil: status === 'leased' ? dueAt : null,
    endedAt: isEnded ? dueAt : null,
    lastError,
    bodyBytes,
  };
}

/** Returns a page of at most `limit` rows. One row more than the limit means that a further page follows. */
export function pageOfQueue(key: QueueKey, rows: readonly QueueItemRow[], limit: number): QueueItemPage {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next =
    last && rows.length > limit ? { state: last.state, dueAt: last.dueAt, position: last.position } : null;
  return { items: shown.map((row) => recordOf(key, row)), next };
}

import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';

/**
 * Cursor of a delivery stream. `position` is the position of the latest sent delivery. `open` contains the positions of
 * sent deliveries whose end has not been sent.
 */
export interface TailCursor {
  position: number;
  open: number[];
}

export interface TailEvent {
  /** `delivery` means a new delivery. `ended` means the end of a delivery that was sent earlier. */
  kind: 'delivery' | 'ended';
  record: DeliveryRecord;
  /** Cursor for resuming the stream after this event. */
  cursor: TailCursor;
}

/**
 * Maximum number of open deliveries in a cursor. Above the limit, the oldest positions are dropped. The ends of the
 * dropped deliveries are not sent.
 */
const MAX_OPEN = 200;
const PAGE = 100;
const OPEN = new Set(['accepted', 'retrying', 'running']);

/**
 * Returns the ends of open deliveries, followed by newer deliveries in order. Each event contains a cursor, so that a
 * client can resume the stream after any event. @spec docs/webhooks.md "Tail"
 */
export async function readTail(
  inbox: WebhookInbox,
  namespaceId: string,
  cursor: TailCursor,
): Promise<TailEvent[]> {
  let { position, open } = cursor;
  const events: TailEvent[] = [];
  const tell = (kind: TailEvent['kind'], record: DeliveryRecord): void => {
    events.push({ kind, record, cursor: { position, open: [...open] } });
  };
  const fresh = await inbox.after(namespaceId, position, PAGE);
  const ended = open.length === 0 ? [] : await inbox.ended(namespaceId, open);
  for (const record of ended) {
    open = open.filter((other) => other !== record.position);
    tell('ended', record);
  }
  for (const record of fresh) {
    position = record.position;
    if (OPEN.has(record.status)) open = [...open, position].slice(-MAX_OPEN);
    tell('delivery', record);
  }
  return events;
}

/** Returns `<position>`, followed by the positions of open deliveries, as in `123.120.121`. */
export function formatCursor({ position, open }: TailCursor): string {
  return [position, ...open].join('.');
}

/** Parses the output of `formatCursor`. Throws VALIDATION_ERROR if the text is malformed. */
export function parseCursor(text: string): TailCursor {
  if (!/^\d{1,15}(?:\.\d{1,15}){0,200}$/.test(text))
    throw new PlatformError(
      'VALIDATION_ERROR',
      'The cursor must be the id of an event of this stream, or 0.',
    );
  const [position = 0, ...open] = text.split('.').map(Number);
  return { position, open };
}

import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';

/**
 * Cursor of a delivery stream: the position of the last delivery sent, and the positions of deliveries that were sent
 * before their end.
 */
export interface TailCursor {
  position: number;
  open: number[];
}

export interface TailEvent {
  /** `delivery`: a new delivery. `ended`: the end of a delivery that was sent earlier. */
  kind: 'delivery' | 'ended';
  record: DeliveryRecord;
  /** Cursor with which a client continues after this event. */
  cursor: TailCursor;
}

/**
 * Maximum number of open deliveries in a cursor. The oldest positions are dropped, and the ends of these deliveries are
 * not sent.
 */
const MAX_OPEN = 200;
const PAGE = 100;
const OPEN = new Set(['accepted', 'retrying', 'running']);

/**
 * Returns the ends of the cursor's open deliveries, then newer deliveries in order. The cursor holds the whole state of
 * a stream, so that a client can resume the stream at any time. @spec docs/webhooks.md "Tail"
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

/** Returns `<position>`, followed by the positions of open deliveries: `123.120.121`. */
export function formatCursor({ position, open }: TailCursor): string {
  return [position, ...open].join('.');
}

/** Parses the text of `formatCursor`. Throws VALIDATION_ERROR. */
export function parseCursor(text: string): TailCursor {
  if (!/^\d{1,15}(?:\.\d{1,15}){0,200}$/.test(text))
    throw new PlatformError(
      'VALIDATION_ERROR',
      'The cursor must be the id of an event of this stream, or 0.',
    );
  const [position = 0, ...open] = text.split('.').map(Number);
  return { position, open };
}

import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';

/** Stream cursor: position plus deliveries still open. */
export interface TailCursor {
  position: number;
  open: number[];
}

export interface TailEvent {
  /** `ended`: the delivery was sent before, while it was open. */
  kind: 'delivery' | 'ended';
  record: DeliveryRecord;
  /** Cursor to continue after this event. */
  cursor: TailCursor;
}

/** Maximum open deliveries in a cursor; the oldest ones are dropped. */
const MAX_OPEN = 200;
const PAGE = 100;
const OPEN = new Set(['accepted', 'retrying', 'running']);

/**
 * New deliveries since `cursor` in order, then the ends of open ones. The cursor is the stream's whole state,
 * so that a client can resume after any time. @spec docs/webhooks.md "Tail"
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

/** `123`, or `123.120.121` with open deliveries. */
export function formatCursor({ position, open }: TailCursor): string {
  return [position, ...open].join('.');
}

/** Throws VALIDATION_ERROR. */
export function parseCursor(text: string): TailCursor {
  if (!/^\d{1,15}(?:\.\d{1,15}){0,200}$/.test(text))
    throw new PlatformError(
      'VALIDATION_ERROR',
      'The cursor must be the id of an event of this stream, or 0.',
    );
  const [position = 0, ...open] = text.split('.').map(Number);
  return { position, open };
}

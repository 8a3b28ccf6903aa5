import { PlatformError } from '../../../../kit/errors.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../../store/ports/index.ts';

/** How far a stream has told: all up to a position, but for the ends of those that were still open. */
export interface TailCursor {
  position: number;
  open: number[];
}

export interface TailEvent {
  /** `ended`: it was told before, when it was open. */
  kind: 'delivery' | 'ended';
  record: DeliveryRecord;
  /** Continue after this one. */
  cursor: TailCursor;
}

/** Ends that a cursor waits for at most; of more, the oldest are given up. */
const MOST_OPEN = 200;
const PAGE = 100;
const OPEN = new Set(['accepted', 'retrying', 'running']);

/**
 * What was written since `cursor`: new deliveries in their order, then the ends of open ones. The cursor is all that
 * the server knows of a stream, so a reader that slept for a day goes on where it was. @spec docs/webhooks.md "Tail"
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
    if (OPEN.has(record.status)) open = [...open, position].slice(-MOST_OPEN);
    tell('delivery', record);
  }
  return events;
}

/** `123`, or `123.120.121` with the open ones behind it. */
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

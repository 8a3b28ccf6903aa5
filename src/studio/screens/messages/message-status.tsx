import type { MessageCounts, MessageStatus } from '../../../contracts/message-records.ts';

/** Statuses from the one that needs attention most. */
const ORDER: readonly MessageStatus[] = ['dead', 'retrying', 'waiting', 'succeeded', 'cancelled'];

/** Returns the status of a message at all its endpoints: the one that needs attention most. */
export function statusOf(deliveries: MessageCounts): string {
  return ORDER.find((status) => deliveries[status] > 0) ?? 'no endpoint';
}

/** Returns how many endpoints have which status, such as `2 succeeded, 1 dead`. */
export function countsText(deliveries: MessageCounts): string {
  const parts = ORDER.flatMap((status) =>
    deliveries[status] > 0 ? [`${deliveries[status]} ${status}`] : [],
  );
  return parts.length === 0 ? 'no endpoint' : parts.toReversed().join(', ');
}

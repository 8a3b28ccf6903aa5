import type { WebhookDelivery } from '../../../contracts/webhook-deliveries.ts';
import type { LiveEvent } from '../../api/live.ts';

import { statusesOf } from './statuses.ts';

type Deliveries = readonly WebhookDelivery[];

/**
 * Adds a delivery of the live stream, or replaces it. The stream has no filters for status and time, so these are
 * applied here.
 */
export function merged(
  items: Deliveries,
  { event, data }: LiveEvent,
  { status, since, until }: { status?: string; since?: string; until?: string },
): Deliveries {
  if (event !== 'delivery' && event !== 'ended') return items;
  const delivery = data as WebhookDelivery;
  const index = items.findIndex(({ webhookId }) => webhookId === delivery.webhookId);
  if (index >= 0) return items.with(index, { ...items[index]!, ...delivery });
  const isInRange =
    delivery.receivedAt >= timeOf(since) && (until === undefined || delivery.receivedAt < timeOf(until));
  const isShown = isInRange && (statusesOf(status)?.includes(delivery.status) ?? true);
  return isShown ? inserted(items, delivery) : items;
}

/** Adds the deliveries of the first page that the list lacks, and replaces the others. */
export function combined(items: Deliveries, page: Deliveries): Deliveries {
  const newer = new Map(page.map((delivery) => [delivery.webhookId, delivery]));
  const known = items.map((item) => {
    const next = newer.get(item.webhookId);
    newer.delete(item.webhookId);
    return next ?? item;
  });
  return [...newer.values()].toReversed().reduce<Deliveries>(inserted, known);
}

/** Deliveries below the last row are left out, because the next page contains them. */
function inserted(items: Deliveries, delivery: WebhookDelivery): Deliveries {
  const index = items.findIndex(({ receivedAt }) => receivedAt <= delivery.receivedAt);
  if (index < 0) return items.length === 0 ? [delivery] : items;
  return items.toSpliced(index, 0, delivery);
}

/** Returns the time of a filter in epoch ms: the text is epoch ms or an ISO 8601 time. */
function timeOf(since: string | undefined): number {
  if (since === undefined) return 0;
  return /^\d+$/.test(since) ? Number(since) : Date.parse(since);
}

import {
  type CountsQuery,
  type countDeliveries,
  HOUR_MS,
  MAX_COUNTED_HOURS,
  type ReplyOf,
  type WebhookProtection,
} from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type {
  DeliveryCursor,
  DeliveryFilter,
  DeliveryHourCounts,
  DeliveryRecord,
  HourRange,
  WebhookInbox,
} from '../../../../../store/ports/index.ts';
import { protectionOf } from '../../../../../webhooks/schemes/index.ts';
import { countedHours, hoursWith, openOf } from '../../../../hour-counts.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import { REFUSED_REQUEST_MS, type RefusedRequests } from '../refused/refused-requests.ts';
import { detailsOf, viewOf } from './delivery-view.ts';

export interface WebhookDeliveriesDeps {
  inbox: WebhookInbox;
  refusedRequests: Pick<RefusedRequests, 'find'>;
  targets: Pick<WebhookTargets, 'find'>;
  clock: Clock;
}

/** Lists and shows the records of deliveries. @spec docs/webhooks.md "Records" */
export class WebhookDeliveries {
  readonly #inbox: WebhookInbox;
  readonly #refusedRequests: Pick<RefusedRequests, 'find'>;
  readonly #targets: Pick<WebhookTargets, 'find'>;
  readonly #clock: Clock;

  constructor({ inbox, refusedRequests, targets, clock }: WebhookDeliveriesDeps) {
    this.#inbox = inbox;
    this.#refusedRequests = refusedRequests;
    this.#targets = targets;
    this.#clock = clock;
  }

  async list(
    namespaceId: string,
    {
      cursor,
      until,
      ...filter
    }: DeliveryFilter & { limit: number; cursor?: string | undefined; until?: number | undefined },
  ) {
    // The list is in the order of times, so its start can be the end of the range.
    const before =
      positionOf(cursor) ?? (until === undefined ? undefined : { receivedAt: until, position: 0 });
    const page = await this.#inbox.list(namespaceId, { ...filter, before });
    return { items: page.items.map(viewOf), nextCursor: page.next && formatCursor(page.next) };
  }

  /** Counts deliveries per hour of their receipt. Throws VALIDATION_ERROR for an invalid range. */
  async countByHour(namespaceId: string, query: CountsQuery): Promise<ReplyOf<typeof countDeliveries>> {
    const now = this.#clock.now();
    const range = countedHours(query, now);
    const count = async (hours: HourRange) =>
      (await this.#inbox.countByHour(namespaceId, hours)).map(viewHour);
    // Sums of hours cost the same however many deliveries there are.
    const [counted, all] = await Promise.all([
      count(range),
      count({ from: now - MAX_COUNTED_HOURS * HOUR_MS, to: now + HOUR_MS }),
    ]);
    const unfinished = all.reduce((sum, { open }) => sum + open, 0);
    return { ...hoursWith(range, counted, NONE), unfinished };
  }

  async get(namespaceId: string, webhookId: string) {
    const record = await requireDelivery(this.#inbox, namespaceId, webhookId);
    const protection = this.#protectionOf(record);
    if (record.status !== 'refused' || record.httpStatus !== 401 || record.replayedBy !== null)
      return { ...detailsOf(record), ...protection };
    // Only the body is shown. The stored headers contain the signature.
    const request = await this.#refusedRequests.find(webhookId);
    return request
      ? {
          ...detailsOf({ ...record, body: request.body }),
          replayableUntil: request.receivedAt + REFUSED_REQUEST_MS,
          ...protection,
        }
      : { ...detailsOf(record), ...protection };
  }

  #protectionOf({ pluginId, event }: DeliveryRecord): { protects?: WebhookProtection } {
    const target = this.#targets.find(pluginId, event);
    const protects = target && protectionOf(target.webhook.auth);
    return protects ? { protects } : {};
  }
}

const NONE = { total: 0, open: 0, succeeded: 0, failed: 0, unhandled: 0 };

function viewHour({ hour, received, succeeded, failed, unhandled }: DeliveryHourCounts) {
  const open = openOf(received, [succeeded, failed, unhandled]);
  return { hour, total: open + succeeded + failed + unhandled, open, succeeded, failed, unhandled };
}

/** Returns a delivery. Throws DELIVERY_NOT_FOUND if the delivery does not exist or belongs to another tenant. */
export async function requireDelivery(
  inbox: WebhookInbox,
  namespaceId: string,
  webhookId: string,
): Promise<DeliveryRecord> {
  const record = await inbox.find(webhookId);
  if (record?.namespaceId === namespaceId) return record;
  throw new PlatformError(
    'DELIVERY_NOT_FOUND',
    `There is no delivery ${webhookId}; it may have been pruned.`,
  );
}

function formatCursor({ receivedAt, position }: DeliveryCursor): string {
  return `${receivedAt}.${position}`;
}

/** Decodes the cursor of a list. Throws VALIDATION_ERROR if the cursor is malformed. */
function positionOf(cursor: string | undefined): DeliveryCursor | undefined {
  if (cursor === undefined) return undefined;
  const [, receivedAt, position] = /^(\d{1,15})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (receivedAt !== undefined && position !== undefined)
    return { receivedAt: Number(receivedAt), position: Number(position) };
  throw new PlatformError('VALIDATION_ERROR', 'query.cursor: must be the nextCursor of the previous page.');
}

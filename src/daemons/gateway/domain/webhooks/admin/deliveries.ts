import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type {
  DeliveryCursor,
  DeliveryFilter,
  DeliveryRecord,
  WebhookInbox,
} from '../../../../../store/ports/index.ts';
import { detailsOf, viewOf } from './delivery-view.ts';

/** Lists and shows the records of deliveries. @spec docs/webhooks.md "Records" */
export class WebhookDeliveries {
  readonly #inbox: WebhookInbox;

  constructor(inbox: WebhookInbox) {
    this.#inbox = inbox;
  }

  async list(
    namespaceId: string,
    { cursor, ...filter }: DeliveryFilter & { limit: number; cursor?: string | undefined },
  ) {
    const page = await this.#inbox.list(namespaceId, { ...filter, before: positionOf(cursor) });
    return { items: page.items.map(viewOf), nextCursor: page.next && formatCursor(page.next) };
  }

  async get(namespaceId: string, webhookId: string) {
    return detailsOf(await requireDelivery(this.#inbox, namespaceId, webhookId));
  }
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

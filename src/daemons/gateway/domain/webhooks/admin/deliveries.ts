import type { DeliveryStatus } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type {
  DeliveryCursor,
  DeliveryFilter,
  DeliveryPage,
  DeliveryRecord,
  KeyValueStore,
  NewDelivery,
  WebhookInbox,
} from '../../../../../store/ports/index.ts';
import type { WebhookDispatcher } from '../dispatch/dispatcher.ts';
import { payloadOf } from '../receive/payload.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import { detailsOf, viewOf } from './delivery-view.ts';

export interface WebhookDeliveriesDeps {
  inbox: WebhookInbox;
  /** Shared by all gateway processes. */
  cache: KeyValueStore;
  targets: WebhookTargets;
  dispatcher: WebhookDispatcher;
  clock: Clock;
  random: Random;
}

export interface Call {
  requestId: string;
  traceId: string;
}

export interface BulkReplay {
  status: DeliveryStatus;
  pluginId?: string | undefined;
  event?: string | undefined;
  since: number;
  limit: number;
}

/** Statuses without a handler run, which cannot be replayed. */
const UNHANDLED: ReadonlySet<DeliveryStatus> = new Set(['refused', 'challenge', 'duplicate']);
const UNFINISHED: ReadonlySet<DeliveryStatus> = new Set(['accepted', 'retrying', 'running']);
const PAGE = 200;
/** A position before every delivery. */
const FIRST: DeliveryCursor = { receivedAt: 0, position: 0 };
/** Claims of bulk replays; each lasts until the record says that the delivery was replayed. */
const CLAIMS = 'webhook-replay';
const CLAIM_MS = minutes(1);

/** Records and replays of deliveries. @spec docs/webhooks.md "Records" */
export function createWebhookDeliveries({
  inbox,
  cache,
  targets,
  dispatcher,
  clock,
  random,
}: WebhookDeliveriesDeps) {
  /** Throws DELIVERY_NOT_FOUND, also for another tenant's delivery. */
  async function require(namespaceId: string, webhookId: string): Promise<DeliveryRecord> {
    const record = await inbox.find(webhookId);
    if (record?.namespaceId === namespaceId) return record;
    throw new PlatformError(
      'DELIVERY_NOT_FOUND',
      `There is no delivery ${webhookId}; it may have been pruned.`,
    );
  }

  /**
   * Throws CONFLICT with the reason when it cannot be replayed; WEBHOOK_NOT_FOUND or PLUGIN_NOT_FOUND without
   * its handler.
   */
  function targetFor(record: DeliveryRecord): DeclaredWebhook {
    const { webhookId, status, pluginId, event, instanceId } = record;
    if (UNHANDLED.has(status))
      throw new PlatformError(
        'CONFLICT',
        `Delivery ${webhookId} was answered without a handler (${status}) and cannot be replayed.`,
      );
    if (UNFINISHED.has(status))
      throw new PlatformError('CONFLICT', `Delivery ${webhookId} is ${status}: it has not ended yet.`);
    if (record.body === null)
      throw new PlatformError(
        'CONFLICT',
        `The body of delivery ${webhookId} was pruned; see retention.deliveriesMaxBytes.`,
      );
    return targets.require(pluginId, event, instanceId === '' ? undefined : instanceId);
  }

  async function replayRecord(record: DeliveryRecord, { requestId, traceId }: Call) {
    const target = targetFor(record);
    const delivery: NewDelivery = {
      webhookId: random.uuid(),
      namespaceId: record.namespaceId,
      pluginId: record.pluginId,
      event: record.event,
      instanceId: record.instanceId,
      receivedAt: clock.now(),
      source: record.source,
      requestId,
      traceId,
      headers: record.headers,
      body: record.body,
      bodyBytes: record.bodyBytes,
      mode: 'async',
      origin: 'replay',
      replayOf: record.webhookId,
      orderKey: record.orderKey,
    };
    await inbox.replay(delivery, '', record);
    await dispatcher.enqueue(delivery, target, payloadOf(record.body), record.marker);
    return { webhookId: delivery.webhookId, replayOf: record.webhookId };
  }

  /** Matching deliveries up to now, oldest first. Replays made by this call are excluded. */
  async function* matching(namespaceId: string, filter: DeliveryFilter): AsyncGenerator<string> {
    const newest = await inbox.latest();
    for (let after: DeliveryCursor | null = FIRST; after; ) {
      const page: DeliveryPage = await inbox.list(namespaceId, { ...filter, limit: PAGE, after });
      for (const { webhookId, position } of page.items) if (position <= newest) yield webhookId;
      after = page.next;
    }
  }

  /** The delivery, unless it cannot be replayed, was replayed, or its redelivery succeeded. */
  async function findUnhandled(webhookId: string): Promise<DeliveryRecord | undefined> {
    const record = await inbox.find(webhookId);
    if (!record || record.body === null || record.replayedBy !== null) return undefined;
    if (!targets.find(record.pluginId, record.event)) return undefined;
    const isSettled = record.marker !== null && (await inbox.isSettled(record.marker, clock.now()));
    return isSettled ? undefined : record;
  }

  /** Undefined: nothing to do. Of concurrent bulk replays in any process, only one replays a delivery. */
  async function replayOnce(webhookId: string, call: Call) {
    if (!(await findUnhandled(webhookId))) return undefined;
    if (!(await cache.setIfAbsent(CLAIMS, webhookId, call.requestId, CLAIM_MS))) return undefined;
    let replayed: Awaited<ReturnType<typeof replayRecord>> | undefined;
    try {
      // Another replay may have finished since the first check.
      const record = await findUnhandled(webhookId);
      replayed = record && (await replayRecord(record, call));
      return replayed;
    } finally {
      if (!replayed) await cache.delete(CLAIMS, webhookId);
    }
  }

  return {
    async list(
      namespaceId: string,
      { cursor, ...filter }: DeliveryFilter & { limit: number; cursor?: string | undefined },
    ) {
      const page = await inbox.list(namespaceId, { ...filter, before: placeOf(cursor) });
      return { items: page.items.map(viewOf), nextCursor: page.next && formatCursor(page.next) };
    },
    get: async (namespaceId: string, webhookId: string) => detailsOf(await require(namespaceId, webhookId)),
    replay: async (namespaceId: string, webhookId: string, call: Call) =>
      replayRecord(await require(namespaceId, webhookId), call),

    async replayMany(namespaceId: string, { status, limit, ...filter }: BulkReplay, call: Call) {
      const items: Array<{ webhookId: string; replayOf: string }> = [];
      let skipped = 0;
      for await (const id of matching(namespaceId, { ...filter, status: [status] })) {
        if (items.length >= limit) return { items, skipped, more: true };
        const replayed = await replayOnce(id, call);
        if (replayed) items.push(replayed);
        else skipped++;
      }
      return { items, skipped, more: false };
    },
  };
}
export type WebhookDeliveries = ReturnType<typeof createWebhookDeliveries>;

function formatCursor({ receivedAt, position }: DeliveryCursor): string {
  return `${receivedAt}.${position}`;
}

/** Throws VALIDATION_ERROR. */
function placeOf(cursor: string | undefined): DeliveryCursor | undefined {
  if (cursor === undefined) return undefined;
  const [, receivedAt, position] = /^(\d{1,15})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (receivedAt !== undefined && position !== undefined)
    return { receivedAt: Number(receivedAt), position: Number(position) };
  throw new PlatformError('VALIDATION_ERROR', 'query.cursor: must be the nextCursor of the previous page.');
}

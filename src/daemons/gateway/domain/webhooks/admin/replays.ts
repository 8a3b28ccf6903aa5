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
import type { WebhookDispatcher } from '../dispatch/webhook-dispatcher.ts';
import { payloadOf } from '../receive/payload.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import { requireDelivery } from './deliveries.ts';

export interface ReplaysDeps {
  inbox: WebhookInbox;
  /** A cache that all gateway processes share, for the claims of bulk replays. */
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

interface Replayed {
  webhookId: string;
  replayOf: string;
}

/** Statuses of deliveries that ended without a handler run. Such deliveries cannot be replayed. */
const UNHANDLED: ReadonlySet<DeliveryStatus> = new Set(['refused', 'challenge', 'duplicate']);
const UNFINISHED: ReadonlySet<DeliveryStatus> = new Set(['accepted', 'retrying', 'running']);
const PAGE = 200;
/** A cursor before the first delivery. */
const FIRST: DeliveryCursor = { receivedAt: 0, position: 0 };
/**
 * Cache scope of the claims of bulk replays. A claim is needed only until the record shows that the delivery was
 * replayed.
 */
const CLAIMS = 'webhook-replay';
const CLAIM_MS = minutes(1);

/** Replays recorded deliveries. @spec docs/webhooks.md "Records" */
export class Replays {
  readonly #deps: ReplaysDeps;

  constructor(deps: ReplaysDeps) {
    this.#deps = deps;
  }

  /**
   * Replays one delivery. Throws DELIVERY_NOT_FOUND if the delivery does not exist. Throws CONFLICT with the reason if
   * the delivery cannot be replayed.
   */
  async replay(namespaceId: string, webhookId: string, call: Call): Promise<Replayed> {
    return this.#replayRecord(await requireDelivery(this.#deps.inbox, namespaceId, webhookId), call);
  }

  async replayMany(namespaceId: string, { status, limit, ...filter }: BulkReplay, call: Call) {
    const items: Replayed[] = [];
    let skipped = 0;
    for await (const id of this.#matching(namespaceId, { ...filter, status: [status] })) {
      if (items.length >= limit) return { items, skipped, more: true };
      const replayed = await this.#replayOnce(id, call);
      if (replayed) items.push(replayed);
      else skipped++;
    }
    return { items, skipped, more: false };
  }

  /**
   * Returns the webhook that handles a replay. Throws CONFLICT with the reason if the delivery cannot be replayed.
   * Throws WEBHOOK_NOT_FOUND or PLUGIN_NOT_FOUND if the webhook is no longer declared.
   */
  #targetFor(record: DeliveryRecord): DeclaredWebhook {
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
    return this.#deps.targets.require(pluginId, event, instanceId === '' ? undefined : instanceId);
  }

  async #replayRecord(record: DeliveryRecord, { requestId, traceId }: Call): Promise<Replayed> {
    const target = this.#targetFor(record);
    const delivery: NewDelivery = {
      webhookId: this.#deps.random.uuid(),
      namespaceId: record.namespaceId,
      pluginId: record.pluginId,
      event: record.event,
      instanceId: record.instanceId,
      receivedAt: this.#deps.clock.now(),
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
    await this.#deps.inbox.replay(delivery, '', record);
    await this.#deps.dispatcher.enqueue(delivery, target, payloadOf(record.body), record.marker);
    return { webhookId: delivery.webhookId, replayOf: record.webhookId };
  }

  /**
   * Returns the ids of deliveries that match the filter, oldest first. Deliveries that are created during the iteration
   * are excluded.
   */
  async *#matching(namespaceId: string, filter: DeliveryFilter): AsyncGenerator<string> {
    const newest = await this.#deps.inbox.latest();
    for (let after: DeliveryCursor | null = FIRST; after; ) {
      const page: DeliveryPage = await this.#deps.inbox.list(namespaceId, { ...filter, limit: PAGE, after });
      for (const { webhookId, position } of page.items) if (position <= newest) yield webhookId;
      after = page.next;
    }
  }

  /**
   * Returns the delivery if a replay is possible and needed. A replay is not needed if the delivery was already
   * replayed or redelivered successfully.
   */
  async #findUnhandled(webhookId: string): Promise<DeliveryRecord | undefined> {
    const record = await this.#deps.inbox.find(webhookId);
    if (!record || record.body === null || record.replayedBy !== null) return undefined;
    if (!this.#deps.targets.find(record.pluginId, record.event)) return undefined;
    const isSettled =
      record.marker !== null && (await this.#deps.inbox.isSettled(record.marker, this.#deps.clock.now()));
    return isSettled ? undefined : record;
  }

  /**
   * Replays a delivery, or returns undefined if no replay is needed. Concurrent bulk replays in all processes replay a
   * delivery only once.
   */
  async #replayOnce(webhookId: string, call: Call): Promise<Replayed | undefined> {
    if (!(await this.#findUnhandled(webhookId))) return undefined;
    if (!(await this.#deps.cache.setIfAbsent(CLAIMS, webhookId, call.requestId, CLAIM_MS))) return undefined;
    let replayed: Replayed | undefined;
    try {
      // The delivery is checked again, because another bulk replay might have finished after the first check.
      const record = await this.#findUnhandled(webhookId);
      replayed = record && (await this.#replayRecord(record, call));
      return replayed;
    } finally {
      if (!replayed) await this.#deps.cache.delete(CLAIMS, webhookId);
    }
  }
}

import { setTimeout as pause } from 'node:timers/promises';
import type { DeliveryStatus, RunError } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes, seconds } from '../../../../../kit/time/duration.ts';
import type {
  DeliveryRecord,
  KeyValueStore,
  NewDelivery,
  WebhookInbox,
} from '../../../../../store/ports/index.ts';
import type { WebhookDispatcher } from '../dispatch/webhook-dispatcher.ts';
import { payloadOf } from '../receive/payload.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import type { DeliveryUploads } from '../receive/uploads.ts';
import type { RefusedReplays } from '../refused/refused-replays.ts';
import { requireDelivery } from './deliveries.ts';
import {
  type BulkReplay,
  type BulkReplayed,
  ReplaySelection,
  type SelectedDelivery,
} from './replay-selection.ts';

export interface ReplaysDeps {
  inbox: WebhookInbox;
  /** A cache that all gateway processes share, for the claims of bulk replays. */
  cache: KeyValueStore;
  targets: WebhookTargets;
  dispatcher: WebhookDispatcher;
  refused: Pick<RefusedReplays, 'replay'>;
  clock: Clock;
  random: Random;
  uploads: Pick<DeliveryUploads, 'store'>;
}

export interface Call {
  requestId: string;
  traceId: string;
}

interface Replayed {
  webhookId: string;
  replayOf: string;
}

/** Statuses of deliveries that ended without a handler run. Such deliveries cannot be replayed. */
const UNHANDLED: ReadonlySet<DeliveryStatus> = new Set(['challenge', 'duplicate']);
const UNFINISHED: ReadonlySet<DeliveryStatus> = new Set(['accepted', 'retrying', 'running']);
/** Deliveries that a call with a cursor examines at most, so that it ends soon when most were replayed before. */
const MAX_EXAMINED = 5000;
/**
 * Cache scope of the claims of bulk replays. A claim is needed only until the record shows that the delivery was
 * replayed.
 */
const CLAIMS = 'webhook-replay';
const CLAIM_MS = minutes(1);
/** Time that a call with a cursor waits for the claim of another call. */
const CLAIM_WAIT_MS = seconds(2);
const CLAIM_POLL_MS = 20;

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
    const record = await requireDelivery(this.#deps.inbox, namespaceId, webhookId);
    return record.status === 'refused'
      ? this.#deps.refused.replay(namespaceId, webhookId, call, { trust: false })
      : this.#replayRecord(record, call);
  }

  /**
   * Replays many deliveries, one batch per call. A delivery that was replayed is never replayed again. With a cursor,
   * a call stops at a delivery that another call has claimed, because that call can have died before the replay.
   */
  async replayMany(namespaceId: string, request: BulkReplay, call: Call) {
    const selection = await ReplaySelection.open(this.#deps, namespaceId, request);
    const done: BulkReplayed = { items: [], refused: [], skipped: 0 };
    const reply = { ...done, matching: null, paused: null };
    if (request.dryRun) {
      const matching = await selection.matching();
      return {
        ...reply,
        matching,
        more: false,
        nextCursor: matching.count === 0 && matching.isComplete ? null : selection.cursorAt(),
      };
    }
    const hasCursor = request.cursor !== undefined;
    let examined = 0;
    let at: readonly number[] | undefined;
    for await (const selected of selection.deliveries()) {
      if (done.items.length >= request.limit || (hasCursor && ++examined > MAX_EXAMINED))
        return { ...reply, ...done, more: true, nextCursor: selection.cursorAt(at) };
      const outcome = await this.#replaySelected(namespaceId, selected, call, hasCursor ? CLAIM_WAIT_MS : 0);
      if (outcome === 'claimed' && hasCursor)
        return {
          ...reply,
          ...done,
          paused: claimed(selected),
          more: true,
          nextCursor: selection.cursorAt(at),
        };
      if (typeof outcome === 'string') done.skipped++;
      else if ('error' in outcome) done.refused.push(outcome);
      else done.items.push(outcome);
      ({ at } = selected);
    }
    return { ...reply, ...done, more: false, nextCursor: null };
  }

  /**
   * Returns the webhook that handles a replay. Throws CONFLICT with the reason if the delivery cannot be replayed.
   * Throws WEBHOOK_NOT_FOUND or PLUGIN_NOT_FOUND if the webhook is no longer declared.
   */
  #targetFor(record: DeliveryRecord): DeclaredWebhook {
    const { webhookId, status } = record;
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
    return this.#deps.targets.requireOf(record);
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
    const payload = await payloadOf(target, delivery);
    await this.#deps.uploads.store(delivery, payload.files);
    await this.#deps.inbox.replay(delivery, '', record);
    await this.#deps.dispatcher.enqueue(delivery, target, payload, record.marker);
    return { webhookId: delivery.webhookId, replayOf: record.webhookId };
  }

  /**
   * Returns the delivery if a replay is possible and needed. A replay is not needed if the delivery was already
   * replayed, or failed and was then redelivered successfully.
   */
  async #findUnhandled(namespaceId: string, webhookId: string): Promise<DeliveryRecord | undefined> {
    const record = await requireDelivery(this.#deps.inbox, namespaceId, webhookId);
    if (record.body === null || record.replayedBy !== null) return undefined;
    if (!this.#deps.targets.of(record)) return undefined;
    if (record.status === 'succeeded' || record.marker === null) return record;
    return (await this.#deps.inbox.isSettled(record.marker, this.#deps.clock.now())) ? undefined : record;
  }

  async #replaySelected(
    namespaceId: string,
    { webhookId, isReplayed }: SelectedDelivery,
    call: Call,
    waitMs: number,
  ): Promise<Replayed | 'handled' | 'claimed' | BulkReplayed['refused'][number]> {
    if (isReplayed) return 'handled';
    try {
      return await this.#replayOnce(namespaceId, webhookId, call, waitMs);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.status >= 500) throw error;
      const { code, message, details } = error;
      return { webhookId, error: { code, message, details } };
    }
  }

  /**
   * Replays a delivery unless no replay is needed, or another call has claimed it. Concurrent bulk replays in all
   * processes replay a delivery only once.
   */
  async #replayOnce(
    namespaceId: string,
    webhookId: string,
    call: Call,
    waitMs: number,
  ): Promise<Replayed | 'handled' | 'claimed'> {
    const { cache } = this.#deps;
    for (let waited = 0; ; waited += CLAIM_POLL_MS) {
      if (!(await this.#findUnhandled(namespaceId, webhookId))) return 'handled';
      if (await cache.setIfAbsent(CLAIMS, webhookId, call.requestId, CLAIM_MS)) break;
      if (waited >= waitMs) return 'claimed';
      await pause(CLAIM_POLL_MS);
    }
    let replayed: Replayed | undefined;
    try {
      // The delivery is checked again, because another bulk replay might have finished after the first check.
      const record = await this.#findUnhandled(namespaceId, webhookId);
      replayed = record && (await this.#replayRecord(record, call));
      return replayed ?? 'handled';
    } finally {
      if (!replayed) await cache.delete(CLAIMS, webhookId);
    }
  }
}

function claimed({ webhookId }: SelectedDelivery): RunError {
  const message = `Delivery ${webhookId} is claimed by another bulk replay. The claim ends within a minute.`;
  return { code: 'CONFLICT', message, details: { webhookId } };
}

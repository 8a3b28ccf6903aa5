import { createHash } from 'node:crypto';
import { LIMITS } from '../../../../contracts/index.ts';
import { readDotPath } from '../../../../kit/data/json.ts';
import type { MaybePromise } from '../../../../kit/data/maybe-promise.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { NewDelivery, WebhookInbox } from '../../../../store/ports/index.ts';
import type { JsonPayload } from '../webhooks/receive/payload.ts';
import type { DeclaredWebhook } from '../webhooks/receive/targets.ts';
import { expressionScope } from './expression-scope.ts';
import type { SourceExpressions } from './source-expressions.ts';
import type { SourceEntry, StoredDestination } from './source-records.ts';
import type { SourceTargets } from './source-targets.ts';

export interface FanOutDeps {
  inbox: Pick<WebhookInbox, 'accept'>;
  targets: Pick<SourceTargets, 'of'>;
  expressions: SourceExpressions;
  clock: Clock;
  enqueue: (delivery: NewDelivery, target: DeclaredWebhook, payload: JsonPayload) => MaybePromise<void>;
  /** Counts a delivery that a filter held back. */
  observe: (pluginId: string, event: string, status: string) => void;
}

/** What became of a delivery at one destination. */
export type FannedOut =
  | { destination: string; delivery: string; error?: string }
  | { destination: string; filtered: true };

/** Stores one delivery for each destination whose filter matches. @spec docs/sources.md "Destinations" */
export class FanOut {
  readonly #deps: FanOutDeps;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the deliveries to all destinations. Their ids follow from the received delivery, so that a repetition after a
   * crash stores nothing twice. `delivery` must contain the body.
   */
  async toAll(delivery: NewDelivery, payload: JsonPayload, entry: SourceEntry): Promise<FannedOut[]> {
    const results = await Promise.all(
      [...entry.destinations.values()].map(async (destination): Promise<FannedOut> => {
        const { name } = destination;
        const verdict = await this.#matches(delivery, payload, entry, destination);
        if (verdict === false) {
          this.#deps.observe(delivery.pluginId, delivery.event, 'filtered');
          return { destination: name, filtered: true };
        }
        const child = childOf(delivery, payload, destination, {
          webhookId: childId(delivery.webhookId, name),
          origin: delivery.origin,
        });
        await this.#store(child, payload);
        return {
          destination: name,
          delivery: child.webhookId,
          ...(verdict === true ? {} : { error: verdict }),
        };
      }),
    );
    return results;
  }

  /** Delivers a received delivery to one destination again. */
  async replayTo(
    delivery: NewDelivery,
    payload: JsonPayload,
    destination: StoredDestination,
    ids: Pick<NewDelivery, 'webhookId' | 'requestId' | 'traceId'>,
  ): Promise<void> {
    const child = childOf(delivery, payload, destination, { ...ids, origin: 'replay' });
    await this.#store({ ...child, receivedAt: this.#deps.clock.now() }, payload);
  }

  /**
   * Returns whether the filter of a destination matches, or the error of the filter. A delivery with an error is stored,
   * so that its failure is recorded at the destination.
   */
  async #matches(
    delivery: NewDelivery,
    payload: JsonPayload,
    { source }: SourceEntry,
    { settings: { filter } }: StoredDestination,
  ): Promise<boolean | string> {
    if (filter === null) return true;
    try {
      return await this.#deps.expressions.matches(filter, expressionScope(delivery, payload, source));
    } catch (error) {
      return (error as Error).message;
    }
  }

  async #store(child: NewDelivery, payload: JsonPayload): Promise<void> {
    const { inbox, clock, targets, enqueue } = this.#deps;
    const marker = {
      key: JSON.stringify(['fan-out', child.webhookId]),
      expiresAt: clock.now() + LIMITS.idempotencyWindowMs,
    };
    const claim = await inbox.accept(child, marker, '');
    if (claim === 'begun') await enqueue(child, targets.of(child), payload);
  }
}

function childOf(
  delivery: NewDelivery,
  payload: JsonPayload,
  { name, settings: { orderBy } }: StoredDestination,
  own: Partial<NewDelivery> & Pick<NewDelivery, 'webhookId' | 'origin'>,
): NewDelivery {
  const order = orderBy === null ? undefined : readDotPath(payload.value, orderBy);
  return {
    webhookId: own.webhookId,
    namespaceId: delivery.namespaceId,
    pluginId: delivery.pluginId,
    event: delivery.event,
    instanceId: name,
    receivedAt: delivery.receivedAt,
    source: delivery.source,
    requestId: own.requestId ?? delivery.requestId,
    traceId: own.traceId ?? delivery.traceId,
    headers: delivery.headers,
    body: delivery.body,
    bodyBytes: delivery.bodyBytes,
    mode: 'async',
    origin: own.origin,
    replayOf: delivery.webhookId,
    orderKey: typeof order === 'string' || typeof order === 'number' ? JSON.stringify(order) : null,
  };
}

/** Returns the id of the delivery to a destination, as a UUID of version 8 (RFC 9562). */
export function childId(webhookId: string, destination: string): string {
  const bytes = createHash('sha256').update(`${webhookId} ${destination}`).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

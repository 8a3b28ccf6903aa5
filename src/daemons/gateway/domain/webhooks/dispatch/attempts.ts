import { LIMITS, type WebhookRetry } from '../../../../../contracts/index.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../../kit/time/deadlines.ts';
import type { NewDelivery, WebhookInbox } from '../../../../../store/ports/index.ts';
import { type JsonPayload, payloadOf } from '../receive/payload.ts';
import { attemptText } from '../receive/step-log.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';
import type { DeliveryEnds } from './delivery-ends.ts';
import type { CallHandler, Handled } from './handler-call.ts';

export interface AttemptsDeps {
  call: CallHandler;
  inbox: WebhookInbox;
  ends: Pick<DeliveryEnds, 'store'>;
  clock: Clock;
  random: Random;
  logger: Logger;
  observe: (pluginId: string, event: string, status: string) => void;
}

/** An accepted delivery in memory, with the data that its next attempt needs. */
export interface QueuedDelivery {
  delivery: NewDelivery;
  /**
   * Declaration of the webhook at the time when the delivery was queued. The declaration determines the concurrency
   * limit.
   */
  target: DeclaredWebhook;
  /** Parsed body. Undefined between attempts, when only the store contains the body. */
  payload: JsonPayload | undefined;
  /** Number of attempts so far. */
  attempts: number;
  marker: Uint8Array | null;
}

export interface AttemptEnd {
  /** Time of the next attempt in epoch ms, or undefined if there is no further attempt. */
  nextAttemptAt: number | undefined;
  /** Whether the scheduler must read the delivery from the store again, for example after a store outage. */
  isUnread: boolean;
}

/**
 * Maximum share by which a backoff is randomly shortened. The jitter spreads retries of deliveries that failed at the
 * same time.
 */
const JITTER = 0.2;

/** Runs attempts of accepted deliveries, and stores their outcome. @spec docs/webhooks.md "Async" */
export class Attempts {
  readonly #deps: AttemptsDeps & { deadlines: Deadlines };

  constructor(deps: AttemptsDeps & { deadlines: Deadlines }) {
    this.#deps = deps;
  }

  /** Runs the currently loaded version of the handler and stores the outcome. Never rejects. */
  async attempt(item: QueuedDelivery, target: DeclaredWebhook): Promise<AttemptEnd> {
    const { delivery } = item;
    const startedAt = this.#deps.clock.now();
    const began = performance.now();
    const payload = item.payload ?? (await this.#readBack(delivery.webhookId, target));
    item.payload = undefined;
    if (payload === 'gone' || payload === 'unread')
      return { nextAttemptAt: undefined, isUnread: payload === 'unread' };
    // The delivery id is null, because workflow starts of async and replayed deliveries are deduplicated by webhook id.
    const handled = await this.#deps.call(delivery, target, payload, null, item.attempts + 1);
    item.attempts++;
    const { retry } = target.webhook;
    const end = outcomeOf(handled, item.attempts, retry);
    const again =
      end === 'retrying' ? Math.max(this.#backoffMs(retry!, item.attempts), handled.retryAfterMs ?? 0) : null;
    const nextAttemptAt = again === null ? null : this.#deps.deadlines.note(this.#deps.clock.now() + again);
    this.#deps.observe(delivery.pluginId, delivery.event, end);
    if (end === 'dead') this.#reportDead(item);
    const times = { tookMs: performance.now() - began, startedAt, nextAttemptAt };
    const isStored = await this.#finish(item, handled, end, times);
    return { nextAttemptAt: nextAttemptAt ?? undefined, isUnread: !isStored };
  }

  async #readBack(webhookId: string, target: DeclaredWebhook): Promise<JsonPayload | 'gone' | 'unread'> {
    try {
      const record = await this.#deps.inbox.find(webhookId);
      return record ? await payloadOf(target, record) : 'gone';
    } catch (error) {
      this.#deps.logger.error('A delivery could not be read back for its next attempt', {
        error,
        meta: { webhookId },
      });
      return 'unread';
    }
  }

  #backoffMs({ backoff: { initialMs, factor, maxMs } }: WebhookRetry, attempts: number): number {
    const full = Math.min(maxMs, initialMs * factor ** (attempts - 1));
    return Math.round(full * (1 - JITTER * this.#deps.random.fraction()));
  }

  #reportDead({ delivery, attempts }: QueuedDelivery): void {
    this.#deps.logger.diagnostic(
      {
        domain: 'webhook',
        event: 'webhook.delivery_dead',
        level: 'error',
        reasonCode: 'ATTEMPTS_EXHAUSTED',
        message: `Delivery ${delivery.webhookId} of ${delivery.pluginId} ${delivery.event} failed ${attempts} times and is a dead letter now; replay it with \`svc webhooks replay ${delivery.webhookId}\``,
        outcome: 'failed',
        evidence: { webhookId: delivery.webhookId, attempts },
      },
      { requestId: delivery.requestId, tenantId: delivery.namespaceId, pluginId: delivery.pluginId },
    );
  }

  /** Stores the end of an attempt. Returns false if the process stops before the end is stored. */
  async #finish(
    item: QueuedDelivery,
    handled: Handled,
    end: ReturnType<typeof outcomeOf>,
    { tookMs, startedAt, nextAttemptAt }: { tookMs: number; startedAt: number; nextAttemptAt: number | null },
  ): Promise<boolean> {
    const { delivery, marker } = item;
    const { webhookId } = delivery;
    try {
      const isStored = await this.#deps.ends.store(webhookId, {
        status: end,
        httpStatus: 202,
        steps: attemptText(end, { tookMs, startedAt, error: errorOf(handled) }),
        outcome: handled.record,
        durationMs: Math.max(0, this.#deps.clock.now() - delivery.receivedAt),
        nextAttemptAt,
      });
      // Settles the idempotency marker. Otherwise a redelivery by the sender would run the handler again after the
      // successful replay.
      if (isStored && handled.succeeded && delivery.origin === 'replay' && marker)
        await this.#deps.inbox.settleMarker(marker, this.#deps.clock.now() + LIMITS.idempotencyWindowMs);
      return isStored;
    } catch (error) {
      // The record stays unfinished in the store, so the delivery runs again after the next start.
      this.#deps.logger.error('The end of an accepted delivery could not be written', {
        error,
        meta: { webhookId },
      });
      return true;
    }
  }
}

function errorOf({ succeeded, record }: Handled): string | null {
  if (succeeded) return null;
  const { error } = JSON.parse(record) as { error?: { code?: string; message?: string } };
  return error ? `${error.code}: ${error.message}` : 'failed';
}

function outcomeOf({ succeeded, isFinal }: Handled, attempts: number, retry: WebhookRetry | undefined) {
  if (succeeded) return 'succeeded';
  if (!retry) return 'failed';
  if (isFinal) return 'dead';
  return attempts < retry.maxAttempts ? 'retrying' : 'dead';
}

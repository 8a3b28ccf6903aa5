import { createRateLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { hours, minutes } from '../../../../../kit/time/duration.ts';
import type { KeyValueStore, SecretKey } from '../../../../../store/ports/index.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { describeEndpoint, endpointName } from './endpoint-name.ts';
import { senderNetwork } from './sender-network.ts';

export interface RefusalSamplesDeps {
  /** A cache that all gateway processes share. */
  cache: KeyValueStore;
  clock: Clock;
  logger: Logger;
  /** Counts a request that is not recorded. */
  observeUnrecorded: (pluginId: string, event: string, status: string) => void;
}

/**
 * Maximum number of records per minute. The first limit applies to one endpoint and address. The second limit applies
 * to all endpoints together.
 */
const RECORDS_PER_SENDER = 60;
const RECORDS_IN_ALL = 1200;
/** Maximum number of endpoint and address pairs with their own limit. Further pairs share one limit. */
const MAX_SENDERS = 10_000;
const REPORT_EVERY_MS = minutes(1);
/** Cache scope of the unrecorded request counts, which operators see per endpoint. Each count resets after a day. */
const SUMS = 'webhook-unrecorded';
const SUM_WINDOW_MS = hours(24);
const MAX_LISTED = 10_000;

/**
 * Limits the records of requests that run no handler, and counts the unrecorded requests. The limit keeps
 * unauthenticated clients from filling the disk and displacing records of genuine deliveries.
 */
export class RefusalSamples {
  readonly #deps: RefusalSamplesDeps;
  readonly #limiter: ReturnType<typeof createRateLimiter>;
  readonly #unrecorded = new Map<string, { endpoint: SecretKey; count: number }>();

  constructor(deps: RefusalSamplesDeps) {
    this.#deps = deps;
    this.#limiter = createRateLimiter(deps.clock, minutes(1), MAX_SENDERS);
  }

  /**
   * Returns true if a record of the request is within the limits. Otherwise counts the request as unrecorded and
   * returns false.
   */
  admits(delivery: DeliveryContext, status: string): boolean {
    const sender = `${endpointName(endpointOf(delivery))} ${senderNetwork(delivery.incoming.source)}`;
    const isSampled =
      this.#limiter.take(sender, RECORDS_PER_SENDER).allowed &&
      this.#limiter.take('in all', RECORDS_IN_ALL).allowed;
    if (!isSampled) this.#count(delivery, status);
    return isSampled;
  }

  /** Returns the number of unrecorded requests within the last day, by endpoint name. */
  async sums(namespaceId: string): Promise<Map<string, number>> {
    await this.#report();
    const prefix = `${JSON.stringify([namespaceId]).slice(0, -1)},`;
    const entries = await this.#deps.cache.scan(SUMS, { prefix, limit: MAX_LISTED });
    return new Map(entries.map(({ key, value }) => [key, Number(value)]));
  }

  #count(delivery: DeliveryContext, status: string): void {
    this.#deps.observeUnrecorded(delivery.pluginId, delivery.event, status);
    const endpoint = endpointOf(delivery);
    const name = endpointName(endpoint);
    const counted = this.#unrecorded.get(name);
    if (counted) counted.count++;
    else {
      if (this.#unrecorded.size === 0) this.#deps.clock.after(REPORT_EVERY_MS, () => void this.#report());
      this.#unrecorded.set(name, { endpoint, count: 1 });
    }
  }

  async #report(): Promise<void> {
    const { cache, logger } = this.#deps;
    const counted = [...this.#unrecorded];
    this.#unrecorded.clear();
    for (const [name, { endpoint, count }] of counted) {
      const { namespaceId, pluginId, event } = endpoint;
      logger.diagnostic(
        {
          domain: 'webhook',
          event: 'webhook.refusals_unrecorded',
          level: 'warn',
          reasonCode: 'REFUSALS_SAMPLED',
          message: `${count} refused requests to ${describeEndpoint(endpoint)} left no record: they exceeded the number recorded per minute`,
          outcome: 'degraded',
          evidence: { event, count },
        },
        { tenantId: namespaceId, pluginId },
      );
      try {
        if (namespaceId !== '') await cache.increment(SUMS, name, { by: count, windowMs: SUM_WINDOW_MS });
      } catch (error) {
        logger.warn('The number of requests without a record could not be stored', { error });
      }
    }
  }
}

/**
 * Returns the endpoint under which an unrecorded request is counted. Endpoints without a secret share one count per
 * event, because clients can invent namespaces and instances.
 */
function endpointOf({ isProvisioned, namespaceId, pluginId, event, instanceId }: DeliveryContext): SecretKey {
  return isProvisioned
    ? { namespaceId, pluginId, event, instanceId }
    : { namespaceId: '', pluginId, event, instanceId: '' };
}

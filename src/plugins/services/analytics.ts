import { PLUGIN_EVENT_NAME } from '../../contracts/index.ts';
import { createTokenBucket, type TokenBucket } from '../../kit/limits/token-bucket.ts';
import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { PlatformService } from '../execution.ts';
import { invalid } from './arguments.ts';
import { eventFields } from './event-fields.ts';

const EVENTS_PER_SECOND = 100;
const EVENTS_AT_ONCE = 1000;
const PAYLOAD_CHARS = 16 * 1024;
const REPORT_DROPS_MS = seconds(5);

interface Budget {
  bucket: TokenBucket;
  dropped: number;
}

export interface AnalyticsServiceDeps {
  analytics: Analytics;
  logger: Logger;
  clock: Clock;
}

/**
 * Creates `ctx.analytics`, which always sets the plugin as the source of an event. The service drops oversized or too
 * frequent events, and throws VALIDATION_ERROR for an invalid event name.
 */
export function createAnalyticsService({ analytics, logger, clock }: AnalyticsServiceDeps): PlatformService {
  const rates = new EventRates(logger, clock);
  return {
    async track({ request }, [name, payload]) {
      if (typeof name !== 'string' || !PLUGIN_EVENT_NAME.test(name))
        throw invalid('the name of an event must be a word');
      const { plugin, tenantId, requestId, traceId } = request;
      const size = JSON.stringify(payload)?.length ?? 0;
      if (size > PAYLOAD_CHARS) {
        // Logs a warning instead of throwing an error. An error would be lost, because the handler does not await the
        // call.
        logger.warn(`The event "${name}" was dropped: its payload has ${size} characters as JSON`, {
          pluginId: plugin.id,
          tenantId,
          requestId,
          traceId,
          logsSource: 'plugin',
          meta: { size, most: PAYLOAD_CHARS },
        });
        return;
      }
      if (!rates.take(plugin.id)) return;
      analytics.track(name, {
        ...eventFields(request),
        source: { product: plugin.id, version: plugin.version },
        payload: payload ?? undefined,
      });
    },
  };
}

/** Limits the event rate of each plugin, and reports dropped events every few seconds. */
class EventRates {
  readonly #budgets = new Map<string, Budget>();
  readonly #logger: Logger;
  readonly #clock: Clock;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  take(pluginId: string): boolean {
    let budget = this.#budgets.get(pluginId);
    if (!budget) {
      budget = { bucket: createTokenBucket(this.#clock, EVENTS_PER_SECOND, EVENTS_AT_ONCE), dropped: 0 };
      this.#budgets.set(pluginId, budget);
    }
    if (budget.bucket.take(1)) return true;
    if (budget.dropped++ === 0) this.#reportLater(budget, pluginId);
    return false;
  }

  #reportLater(budget: Budget, pluginId: string): void {
    this.#clock.after(REPORT_DROPS_MS, () => {
      this.#logger.warn(
        `${budget.dropped} analytics events of the plugin were dropped: the rate limit was exceeded`,
        { pluginId, logsSource: 'plugin', meta: { dropped: budget.dropped } },
      );
      budget.dropped = 0;
    });
  }
}

import { postgresUrlOf, redisUrlOf } from '../kit/config/store-url.ts';
import { type CreateLimiter, localLimiters } from '../kit/limits/rate-limiter.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import { openRateCounters } from '../store/open-store.ts';
import type { StartOptions } from './start-options.ts';
import { storedLimiters } from './stored-limiters.ts';

/**
 * Opens the rate limits of a service. In a cluster, the limits count calls across all nodes. Otherwise, the limits
 * count calls across the processes of the service.
 */
export async function openLimiters(
  service: string,
  { config, clock, dataDir, portShare, env = {} }: StartOptions,
  logger: Logger,
  stack: AsyncDisposableStack,
): Promise<CreateLimiter> {
  const counters = await openRateCounters({
    redisUrl: redisUrlOf(config.cache, env),
    postgresUrl: config.cluster.enabled ? postgresUrlOf(config.store, env) : null,
    sqlite: portShare && { dataDir, isFirst: !portShare.joins },
    ...{ clock, logger },
  });
  if (!counters) return localLimiters(clock);
  stack.adopt(counters, (opened) => opened.close());
  return storedLimiters({ counters, service, clock, logger });
}

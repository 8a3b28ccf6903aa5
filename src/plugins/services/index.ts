import { type Analytics, silentAnalytics } from '../../kit/analytics.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { PlatformServices } from '../execution.ts';
import { createAnalyticsService } from './analytics.ts';
import { createFetchService, type FetchServiceOptions } from './fetch.ts';
import { createInvokeService, type InvokeCommand } from './invoke.ts';
import { createKeyValueService, type StateAccess } from './key-value.ts';
import { createLogService, createPluginLogSink } from './log.ts';

export type { Invocation, InvokeCommand } from './invoke.ts';
export type { StateAccess, StateItem, StateScope } from './key-value.ts';

export interface PlatformServicesDeps {
  state: StateAccess;
  logger: Logger;
  clock: Clock;
  /** Where `ctx.analytics` and the hits of `ctx.cache` are told; nowhere unless given. */
  analytics?: Analytics;
  fetch?: Omit<FetchServiceOptions, 'clock'>;
  /** Runs a command of another plugin; without it `ctx.invoke` says that there are none. */
  invoke?: InvokeCommand;
}

/** What handlers reach through their context, the same for every backend. @spec docs/plugins.md */
export function createPlatformServices({
  state,
  logger,
  clock,
  analytics = silentAnalytics,
  fetch,
  invoke,
}: PlatformServicesDeps): PlatformServices {
  return {
    log: createLogService(createPluginLogSink({ logger, clock })),
    state: createKeyValueService('state', state),
    cache: createKeyValueService('cache', state, analytics),
    analytics: createAnalyticsService({ analytics, logger, clock }),
    fetch: createFetchService({ ...fetch, clock }),
    ...(invoke ? { invoke: createInvokeService(invoke) } : {}),
  };
}

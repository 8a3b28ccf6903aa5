import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { PlatformServices } from '../execution.ts';
import { createFetchService, type FetchServiceOptions } from './fetch.ts';
import { createKeyValueService, type StateAccess } from './key-value.ts';
import { createLogService, createPluginLogSink } from './log.ts';

export type { StateAccess, StateItem, StateScope } from './key-value.ts';

export interface PlatformServicesDeps {
  state: StateAccess;
  logger: Logger;
  clock: Clock;
  fetch?: Omit<FetchServiceOptions, 'clock'>;
}

/** What handlers reach through their context, the same for every backend. @spec docs/plugins.md */
export function createPlatformServices({
  state,
  logger,
  clock,
  fetch,
}: PlatformServicesDeps): PlatformServices {
  return {
    log: createLogService(createPluginLogSink({ logger, clock })),
    state: createKeyValueService('state', state),
    cache: createKeyValueService('cache', state),
    fetch: createFetchService({ ...fetch, clock }),
  };
}

import { type Analytics, silentAnalytics } from '../../kit/analytics.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { PlatformServices } from '../execution.ts';
import { createAnalyticsService } from './analytics.ts';
import { createFetchService, type FetchServiceOptions } from './fetch.ts';
import { createInvokeService, type InvokeCommand } from './invoke.ts';
import { createJobsService, type JobAccess } from './jobs.ts';
import { createKeyValueService, type StateAccess } from './key-value.ts';
import { createLogService, createPluginLogSink } from './log.ts';
import { createWebhooksService, type WebhookAccess } from './webhooks.ts';
import { createWorkflowsService, type WorkflowAccess } from './workflows.ts';

export type { CallScope } from './call-scope.ts';
export type { Invocation, InvokeCommand } from './invoke.ts';
export type { JobAccess } from './jobs.ts';
export type { StateAccess, StateItem, StateScope } from './key-value.ts';
export type { WebhookAccess } from './webhooks.ts';
export type { WorkflowAccess } from './workflows.ts';

export interface PlatformServicesDeps {
  state: StateAccess;
  logger: Logger;
  clock: Clock;
  /** Where `ctx.analytics` and the hits of `ctx.cache` are told; nowhere unless given. */
  analytics?: Analytics;
  fetch?: Omit<FetchServiceOptions, 'clock'>;
  /** Runs a command of another plugin; without it `ctx.invoke` says that there are none. */
  invoke?: InvokeCommand;
  /** The workflow daemon; without it `ctx.workflows` and `ctx.jobs` say that there is none. */
  workflows?: WorkflowAccess;
  jobs?: JobAccess;
  /** The gateway; without it `ctx.webhooks` says that there is none. */
  webhooks?: WebhookAccess;
}

/** What handlers reach through their context, the same for every backend. @spec docs/plugins.md */
export function createPlatformServices({
  state,
  logger,
  clock,
  analytics = silentAnalytics,
  fetch,
  invoke,
  workflows,
  jobs,
  webhooks,
}: PlatformServicesDeps): PlatformServices {
  return {
    log: createLogService(createPluginLogSink({ logger, clock })),
    state: createKeyValueService('state', state),
    cache: createKeyValueService('cache', state, analytics),
    analytics: createAnalyticsService({ analytics, logger, clock }),
    fetch: createFetchService({ ...fetch, clock }),
    ...(invoke ? { invoke: createInvokeService(invoke) } : {}),
    ...(workflows ? { workflows: createWorkflowsService(workflows) } : {}),
    ...(jobs ? { jobs: createJobsService(jobs) } : {}),
    ...(webhooks ? { webhooks: createWebhooksService(webhooks) } : {}),
  };
}

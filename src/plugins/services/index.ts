import { type Analytics, silentAnalytics } from '../../kit/telemetry/analytics.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { PlatformServices } from '../execution.ts';
import { type AdapterWatch, unwatched } from './adapter-watch.ts';
import { createAnalyticsService } from './analytics.ts';
import { type ConnectionAccess, createConnectionsService } from './connections.ts';
import { createEmbeddingsService, type GetEmbedder } from './embeddings.ts';
import { createEmitService, type EmitAccess } from './emit.ts';
import { createFetchService, type FetchServiceOptions } from './fetch.ts';
import { withFetchEvents } from './fetch-events.ts';
import { createInvokeService, type InvokeCommand } from './invoke.ts';
import { createJobsService, type JobAccess } from './jobs.ts';
import { createKeyValueService, type StateAccess } from './key-value.ts';
import { createLlmService, type GetLanguageModel } from './llm.ts';
import { createLogService, createPluginLogSink } from './log.ts';
import { createProgressService, ExecutionListeners, listenedLog } from './progress.ts';
import { createSecretsService, type SecretAccess } from './secrets.ts';
import { createStepsService, type StepAccess } from './steps.ts';
import { createStorageService, type ObjectAccess } from './storage.ts';
import { createTunnelService } from './tunnel.ts';
import { createVectorStoreService, type VectorAccess } from './vector-store.ts';
import { createWebhooksService, type WebhookAccess } from './webhooks.ts';
import { createWorkflowsService, type WorkflowAccess } from './workflows.ts';

export type { AdapterWatch } from './adapter-watch.ts';
export { type CallScope, callScope } from './call-scope.ts';
export type { ConnectionAccess } from './connections.ts';
export type { EmitAccess } from './emit.ts';
export type { Invocation, InvokeCommand } from './invoke.ts';
export type { JobAccess } from './jobs.ts';
export type { StateAccess, StateItem, StateScope } from './key-value.ts';
export { type ExecutionListener, ExecutionListeners } from './progress.ts';
export { type SecretAccess, secretMissing } from './secrets.ts';
export type { ReplayId, StepAccess } from './steps.ts';
export type { ObjectAccess, ObjectScope } from './storage.ts';
export type { VectorAccess, VectorScope } from './vector-store.ts';
export type { WebhookAccess } from './webhooks.ts';
export type { WorkflowAccess } from './workflows.ts';

/** Implementations of `ctx.storage`, `ctx.vectorStore`, `ctx.llm` and `ctx.embeddings`. */
export interface AdapterParts {
  objects: ObjectAccess;
  vectors: VectorAccess;
  model: GetLanguageModel;
  embedder: GetEmbedder;
  watch?: AdapterWatch;
}

export interface PlatformServicesDeps {
  state: StateAccess;
  logger: Logger;
  clock: Clock;
  /** Receives events of `ctx.analytics` and `ctx.cache`. By default, events are discarded. */
  analytics?: Analytics;
  fetch?: Omit<FetchServiceOptions, 'clock'>;
  /** Runs a command of another plugin. If absent, `ctx.invoke` is not implemented. */
  invoke?: InvokeCommand;
  /** The workflow service. If absent, `ctx.workflows` and `ctx.jobs` are not implemented. */
  workflows?: WorkflowAccess;
  jobs?: JobAccess;
  /**
   * Access to runs of workflows that are defined in code. If absent, the functions of such workflows cannot execute
   * steps.
   */
  steps?: StepAccess;
  /** Access to the gateway. If absent, `ctx.webhooks` is not implemented. */
  webhooks?: WebhookAccess;
  /** Access to the outgoing messages of the gateway. If absent, `ctx.emit` is not implemented. */
  messages?: EmitAccess;
  /** Access to the secrets of tenants. If absent, `ctx.secrets` is not implemented. */
  secrets?: SecretAccess;
  /** Access to the connections of tenants. If absent, `ctx.connections` is not implemented. */
  connections?: ConnectionAccess;
  adapters?: AdapterParts;
  /** Listeners of executions. By default, progress is discarded. */
  listeners?: ExecutionListeners;
}

/**
 * Creates the services that handlers call through their context. All execution backends use these services. @spec
 * docs/plugins.md
 */
export function createPlatformServices({
  state,
  logger,
  clock,
  analytics = silentAnalytics,
  fetch,
  invoke,
  workflows,
  jobs,
  steps,
  webhooks,
  messages,
  secrets,
  connections,
  adapters,
  listeners = new ExecutionListeners(),
}: PlatformServicesDeps): PlatformServices {
  return {
    log: listenedLog(createLogService(createPluginLogSink({ logger, clock })), listeners),
    progress: createProgressService(listeners),
    state: createKeyValueService('state', state),
    cache: createKeyValueService('cache', state, analytics),
    analytics: createAnalyticsService({ analytics, logger, clock }),
    fetch: withFetchEvents(createFetchService({ ...fetch, clock }), analytics),
    tunnel: createTunnelService(fetch),
    ...(invoke ? { invoke: createInvokeService(invoke) } : {}),
    ...(workflows ? { workflows: createWorkflowsService(workflows) } : {}),
    ...(jobs ? { jobs: createJobsService(jobs) } : {}),
    ...(steps ? { steps: createStepsService(steps) } : {}),
    ...(webhooks ? { webhooks: createWebhooksService(webhooks) } : {}),
    ...(messages ? { emit: createEmitService(messages) } : {}),
    ...(secrets ? { secrets: createSecretsService(secrets) } : {}),
    ...(connections ? { connections: createConnectionsService(connections) } : {}),
    ...(adapters ? adapterServices(adapters, analytics, clock) : {}),
  };
}

function adapterServices(
  { objects, vectors, model, embedder, watch = unwatched }: AdapterParts,
  analytics: Analytics,
  clock: Clock,
): PlatformServices {
  return {
    storage: createStorageService(objects, analytics, watch),
    vectorStore: createVectorStoreService(vectors, analytics, watch),
    llm: createLlmService({ model, analytics, watch, clock }),
    embeddings: createEmbeddingsService(embedder, analytics, watch),
  };
}

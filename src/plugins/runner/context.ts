import type {
  EntryOptions,
  ExecutionRequest,
  KeyValueAccess,
  PluginContextV3,
  PluginLog,
} from '../../contracts/index.ts';
import { PLUGIN_EVENT_NAME } from '../../contracts/plugin-context.ts';
import { adapterServices } from './adapter-services.ts';
import { createFetch } from './fetch.ts';
import type { PlatformCalls } from './platform-calls.ts';
import type { RunnerRequest } from './protocol.ts';
import { connections, emitter, taskServices } from './task-services.ts';

export interface ContextParts {
  executionId: string;
  request: RunnerRequest;
  plugin: ExecutionRequest['plugin'];
  signal: AbortSignal;
  log: PluginLog;
  env: Readonly<Record<string, string>>;
  calls: PlatformCalls;
}

/** Builds a handler's context. @spec Versioning (PluginContextV3) */
export function createContext(parts: ContextParts): PluginContextV3 {
  const { executionId, request, plugin, calls, signal } = parts;
  let opened: typeof globalThis.fetch | undefined;
  const fetch: typeof globalThis.fetch = (...args) => {
    opened ??= createFetch(calls, executionId, signal);
    return opened(...args);
  };
  return {
    host: request.host,
    hostContext: hostContextOf(request),
    requestId: request.requestId,
    traceId: request.traceId,
    executionId,
    pluginId: plugin.id,
    pluginVersion: plugin.version,
    tenantId: request.tenantId,
    user: request.user,
    params: request.params,
    config: request.config,
    signal,
    log: parts.log,
    cache: keyValue(calls, executionId, 'cache'),
    state: keyValue(calls, executionId, 'state'),
    analytics: analytics(parts),
    progress: progress(parts),
    env: parts.env,
    ...taskServices(calls, executionId),
    emit: emitter(calls, executionId),
    ...adapterServices(calls, executionId),
    invoke: <Result>(command: string, input?: unknown) =>
      calls.call(executionId, 'invoke', 'run', [command, input]) as Promise<Result>,
    connections: connections(calls, executionId, fetch),
    fetch,
  };
}

/**
 * Returns the host context. A webhook's payload equals its input, so the frame contains only the input. @spec Webhook
 * handler context
 */
function hostContextOf({ host, hostContext, input }: RunnerRequest): Record<string, unknown> {
  return host === 'webhook' ? { ...hostContext, payload: input } : hostContext;
}

/** Creates `ctx.analytics`. A failure to send an event must not fail the handler. The platform logs rejected events. */
function analytics({ calls, executionId }: ContextParts): PluginContextV3['analytics'] {
  return {
    track(name, payload) {
      if (typeof name !== 'string' || !PLUGIN_EVENT_NAME.test(name)) {
        throw new TypeError(
          `ctx.analytics.track(${JSON.stringify(name)}): the name must have at most 128 letters, digits and . _ : - characters.`,
        );
      }
      calls.call(executionId, 'analytics', 'track', [name, payload]).catch(() => {});
    },
  };
}

/** Creates `ctx.progress`. A failure to report progress must not fail the handler. */
function progress({ calls, executionId }: ContextParts): PluginContextV3['progress'] {
  return (done, total, message) =>
    void calls.call(executionId, 'progress', 'report', [done, total, message]).catch(() => {});
}

function keyValue(calls: PlatformCalls, executionId: string, service: 'state' | 'cache'): KeyValueAccess {
  const call = (method: string, ...args: unknown[]) => calls.call(executionId, service, method, args);
  const access = {
    get: async (key: string) => ((await call('get', key)) as { value?: unknown }).value,
    async set(key: string, value: unknown, options: EntryOptions = {}) {
      await call('set', key, jsonValue(service, key, value), options);
    },
    setIfAbsent: (key: string, value: unknown, options: EntryOptions = {}) =>
      call('setIfAbsent', key, jsonValue(service, key, value), options),
    delete: (key: string) => call('delete', key),
    increment: (key: string, by = 1, options = {}) => call('increment', key, by, options),
    list: (options = {}) => call('list', options),
  };
  return access as KeyValueAccess;
}

/**
 * Throws an error for `undefined`, functions and symbols. JSON would silently drop these values or convert them to
 * null.
 */
function jsonValue(service: string, key: string, value: unknown): unknown {
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') {
    throw new TypeError(`ctx.${service}.set("${key}"): the value must be JSON, not ${typeof value}.`);
  }
  return value;
}

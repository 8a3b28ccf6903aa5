import { PlatformError } from '../../kit/errors/errors.ts';
import type { LogFields, Logger, LogLevel } from '../../kit/telemetry/logger.ts';
import { LOG_LEVELS } from '../../kit/telemetry/logger.ts';
import type { LoadedPlugin, PluginRegistry } from '../../plugins/index.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import type { DeclaredHandler, Handlers } from './domain/steps/kinds/handlers.ts';

/** Forwards log lines of plugin handlers to listeners by request id. */
export interface LogTee {
  /** Logger for the plugin runtime. Only lines written to this logger reach the listeners. */
  logger: Logger;
  listen(requestId: string, take: (level: string, message: string) => void): () => void;
}

/** Wraps a logger so that log lines of plugin code also reach the listener of the call. */
export function createLogTee(target: Logger): LogTee {
  const listeners = new Map<string, (level: string, message: string) => void>();

  function wrap(logger: Logger, inherited: LogFields): Logger {
    const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
      logger[level](message, fields);
      const { logsSource, requestId } = { ...inherited, ...fields };
      if (logsSource === 'plugin' && requestId !== undefined) listeners.get(requestId)?.(level, message);
    };
    return {
      ...logger,
      ...(Object.fromEntries(LOG_LEVELS.map((level) => [level, at(level)])) as Record<
        LogLevel,
        ReturnType<typeof at>
      >),
      child: (fields) => wrap(logger.child(fields), { ...inherited, ...fields }),
    };
  }
  return {
    logger: wrap(target, {}),
    listen(requestId, take) {
      listeners.set(requestId, take);
      return () => listeners.delete(requestId);
    },
  };
}

/** Exposes the commands and jobs of plugins to steps. */
export function pluginHandlers(runtime: PluginRuntime, tee: LogTee): Handlers {
  return {
    pluginOf: (name) => parts(name).id,
    command(uses) {
      const { plugin, name } = split(runtime.registry, uses);
      const declared = plugin.manifest.commands.find(({ id }) => id === name);
      if (!declared)
        throw new PlatformError('INVALID_HANDLER', `The plugin ${plugin.id} has no command "${name}".`, {
          details: { pluginId: plugin.id, command: name },
        });
      return handlerOf(plugin, declared);
    },
    job(handler) {
      const missing = (why: string, reason?: 'not_loaded'): PlatformError =>
        new PlatformError('JOB_NOT_FOUND', `There is no job handler "${handler}": ${why}`, {
          details: { handler, ...(reason ? { reason } : {}) },
        });
      const { id, name } = parts(handler);
      const plugin = runtime.registry.find(id);
      if (!plugin)
        throw missing(
          `the plugin "${id}" is not loaded; \`svc plugins list\` shows the loaded plugins.`,
          'not_loaded',
        );
      const declared = plugin.manifest.jobs.find((job) => job.id === name);
      if (!declared) {
        const known = plugin.manifest.jobs.map((job) => job.id).join(', ');
        throw missing(`the plugin declares ${known === '' ? 'no jobs' : known}.`);
      }
      return handlerOf(plugin, declared);
    },
    async execute({ declared, hostId, log, signal, ...call }) {
      const stopListening = tee.listen(call.requestId, log);
      try {
        return await runtime.execute(
          {
            plugin: declared.pluginId,
            handler: declared.handler,
            host: call.host,
            hostContext: call.hostContext,
            input: call.input,
            params: {},
            user: hostId === 'anonymous' ? null : { hostId, namespaceId: call.tenantId },
            tenantId: call.tenantId,
            requestId: call.requestId,
            traceId: call.traceId,
            parentSpanId: call.parentSpanId,
            timeoutMs: call.timeoutMs,
            schemas: {
              ...(declared.input ? { input: declared.input } : {}),
              ...(declared.output ? { output: declared.output } : {}),
            },
          },
          { signal, onBegun: call.begun, alone: call.alone, waitsForQueue: true },
        );
      } finally {
        stopListening();
      }
    },
  };
}

function parts(uses: string): { id: string; name: string } {
  const slash = uses.lastIndexOf('/');
  return { id: uses.slice(0, slash), name: uses.slice(slash + 1) };
}

function split(registry: PluginRegistry, uses: string): { plugin: LoadedPlugin; name: string } {
  const { id, name } = parts(uses);
  return { plugin: registry.require(id), name };
}

type Declared = LoadedPlugin['manifest']['commands'][number] | LoadedPlugin['manifest']['jobs'][number];

function handlerOf(plugin: LoadedPlugin, declared: Declared): DeclaredHandler {
  return {
    pluginId: plugin.id,
    handler: declared.handler,
    input: declared.input,
    output: 'output' in declared ? declared.output : undefined,
    timeoutMs: declared.timeoutMs,
    idempotent: declared.idempotent,
  };
}

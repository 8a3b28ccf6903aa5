import {
  type CommandResult,
  type ExecutionRequest,
  LIMITS,
  type ManifestV3,
  type PlatformConfig,
} from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';
import type { Logger } from '../kit/logger.ts';
import {
  createPlatformServices,
  createWorkerBackend,
  type ExecutionBackend,
  loadPlugins,
  type PluginRegistry,
  type RunOptions,
} from '../plugins/index.ts';
import type { Resources } from './define-daemon.ts';
import { createStateAccess } from './state-access.ts';

/** A plugin as far as running it goes. */
export interface RunnablePlugin {
  id: string;
  version: string;
  root: string;
  manifest: ManifestV3;
}

type CallFields =
  | 'handler'
  | 'host'
  | 'hostContext'
  | 'input'
  | 'params'
  | 'user'
  | 'tenantId'
  | 'requestId'
  | 'traceId';

/**
 * A call of one handler. `permissions` replace those of the plugin (a route's own); `timeoutMs` is 60 s and
 * `schemas` are none unless given.
 */
export interface PluginCall
  extends Pick<ExecutionRequest, CallFields>,
    Partial<Pick<ExecutionRequest, 'schemas' | 'permissions' | 'timeoutMs'>> {
  /** The plugin, or the id of a loaded one. */
  plugin: RunnablePlugin | string;
}

/** The project's plugins, ready to be called from a daemon. */
export interface PluginRuntime {
  readonly registry: PluginRegistry;
  /**
   * Runs a handler where the config says its plugin runs. Resolves with what the handler returned; throws
   * PLUGIN_NOT_FOUND and what `ExecutionBackend.run` throws.
   */
  execute(call: PluginCall, options?: RunOptions): Promise<CommandResult>;
  /** Ends the plugins' processes; calls under way fail. */
  close(): Promise<void>;
}

/** Loads the plugins that the config names, reports those that are broken, and makes ready what runs the others. */
export async function createPluginRuntime(resources: Resources): Promise<PluginRuntime> {
  const { config, projectDir, random, logger } = resources;
  const registry = await loadPlugins({ projectDir, patterns: config.plugins });
  reportBroken(registry, logger);
  const backends = createBackends(resources);

  return {
    registry,
    async execute({ plugin, ...call }, options) {
      const { id, version, root, manifest } = typeof plugin === 'string' ? registry.require(plugin) : plugin;
      const backend = backendFor(config.execution, id, backends);
      return backend.run(
        {
          ...call,
          executionId: random.uuid(),
          plugin: { id, version, root },
          config: ownValue(config.pluginConfig, id) ?? {},
          permissions: call.permissions ?? manifest.permissions,
          schemas: call.schemas ?? {},
          timeoutMs: call.timeoutMs ?? LIMITS.routeTimeoutMs,
        },
        options,
      );
    },
    async close() {
      await Promise.all(Object.values(backends).map((backend) => backend.close()));
    },
  };
}

type BackendName = PlatformConfig['execution']['default'];
/** Those that this version has. */
type Backends = Partial<Record<BackendName, ExecutionBackend>>;

function createBackends(resources: Resources): Backends {
  const { config, dataDir, logger, clock } = resources;
  const services = createPlatformServices({ state: createStateAccess(resources), logger, clock });
  return {
    worker: createWorkerBackend({ config: config.execution.worker, services, logger, clock, dataDir }),
  };
}

/** Never another backend than the one asked for: whoever asks for a container relies on its walls. */
function backendFor(
  execution: PlatformConfig['execution'],
  pluginId: string,
  backends: Backends,
): ExecutionBackend {
  const own = ownValue(execution.plugins, pluginId)?.backend;
  const name = own ?? execution.default;
  const backend = backends[name];
  if (backend) return backend;
  const setting = own ? `execution.plugins["${pluginId}"].backend` : 'execution.default';
  throw new PlatformError(
    name === 'host' ? 'HOST_UNAVAILABLE' : 'SANDBOX_ERROR',
    `${setting} is "${name}", a backend that is not available in this version; set it to "worker".`,
    { details: { pluginId, backend: name } },
  );
}

/** A plugin may be called "constructor". */
function ownValue<Value>(values: Record<string, Value>, key: string): Value | undefined {
  return Object.hasOwn(values, key) ? values[key] : undefined;
}

function reportBroken(registry: PluginRegistry, logger: Logger): void {
  for (const { id, folder, faults } of registry.broken) {
    logger.diagnostic(
      {
        domain: 'plugins',
        event: 'plugin.broken',
        level: 'error',
        reasonCode: faults[0]?.code ?? 'INVALID_MANIFEST',
        message: `The plugin ${id ?? folder} is left out: ${faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ')}`,
        outcome: 'degraded',
        evidence: { folder, faults },
      },
      id ? { pluginId: id } : {},
    );
  }
}

import {
  type CommandDecl,
  type CommandResult,
  type ExecutionRequest,
  LIMITS,
  type ManifestV3,
  type PlatformConfig,
} from '../contracts/index.ts';
import { every, systemClock } from '../kit/clock.ts';
import { messageOf, PlatformError } from '../kit/errors.ts';
import type { Logger } from '../kit/logger.ts';
import { nearest } from '../kit/nearest.ts';
import {
  type BrokenPlugin,
  createDescriber,
  createPlatformServices,
  createWorkerBackend,
  type ExecutionBackend,
  type Invocation,
  type InvokeCommand,
  type LoadedPlugin,
  loadPlugins,
  lockFileStamp,
  type PlatformServices,
  type PluginDescriber,
  type PluginFault,
  type PluginRegistry,
  type RunOptions,
  type WorkerBackend,
} from '../plugins/index.ts';
import type { Resources } from './define-daemon.ts';
import { executionEvents } from './execution-events.ts';
import { gatewayDispatch } from './gateway-dispatch.ts';
import { createPoolMetrics } from './plugin-metrics.ts';
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
 * `schemas` are none unless given; `executionId` is made unless another daemon sent one.
 */
export interface PluginCall
  extends Pick<ExecutionRequest, CallFields>,
    Partial<
      Pick<ExecutionRequest, 'executionId' | 'schemas' | 'permissions' | 'timeoutMs' | 'parentSpanId'>
    > {
  /** The plugin, or the id of a loaded one. */
  plugin: RunnablePlugin | string;
}

/** The project's plugins, ready to be called from a daemon. */
export interface PluginRuntime {
  /** As of the latest reload: ask for it anew each time. */
  readonly registry: PluginRegistry;
  /** Asks plugin code about itself. */
  readonly describer: PluginDescriber;
  /** What handlers reach through their context. */
  readonly services: PlatformServices;
  /**
   * Runs a handler where the config says its plugin runs. Resolves with what the handler returned; throws
   * PLUGIN_NOT_FOUND and what `ExecutionBackend.run` throws.
   */
  execute(call: PluginCall, options?: RunOptions): Promise<CommandResult>;
  /** The plugins as they are on disk now, without swapping them in. */
  read(): Promise<PluginRegistry>;
  /** Reads the plugins anew and swaps them in, unless one that runs would be lost by it; false when it was refused. */
  reload(): Promise<boolean>;
  /** Called after each swap; the returned function ends it. */
  onReload(listener: (registry: PluginRegistry) => void): () => void;
  /** Ends the plugins' processes; calls under way fail. */
  close(): Promise<void>;
}

type BackendName = PlatformConfig['execution']['default'];
/** The backends that are not in this process: the gateway makes its own, others ask the gateway. */
export type ElsewhereBackends = Record<Exclude<BackendName, 'worker'>, ExecutionBackend>;
export type CreateElsewhere = (services: PlatformServices) => ElsewhereBackends;

/** How often the lock file is looked at; in real time, as files change in it. */
const WATCH_MS = 250;

/**
 * Loads the plugins of the config and of the lock file, reports those that are broken, makes ready what runs the
 * others, and does so again whenever the lock file changes. @spec docs/decisions.md "Reload"
 */
export async function createPluginRuntime(
  resources: Resources,
  createElsewhere: CreateElsewhere = () => ({
    container: gatewayDispatch('container', resources),
    host: gatewayDispatch('host', resources),
  }),
): Promise<PluginRuntime> {
  const { config, projectDir, dataDir, random, logger } = resources;
  const track = executionEvents(resources);
  const invoke: InvokeCommand = (invocation) => invokeCommand(runtime, invocation);
  const { services, backends } = createBackends(resources, invoke, createElsewhere);
  createPoolMetrics(resources.metrics, backends.worker.stats);
  const describer = createDescriber(backends.worker, random);
  const load = () =>
    loadPlugins({
      projectDir,
      patterns: config.plugins,
      dataDir,
      evaluate: describer.manifest,
      checkConfig: (plugin) => configFaults(plugin, config.pluginConfig, describer),
    });
  const listeners = new Set<(registry: PluginRegistry) => void>();
  let stamp = await lockFileStamp(dataDir);
  let registry: PluginRegistry;
  try {
    registry = await load();
  } catch (error) {
    await backends.worker.close();
    throw error;
  }
  reportBroken(registry, logger);
  let reloading: Promise<boolean> | undefined;

  async function swap(): Promise<boolean> {
    const next = await load();
    const lost = lostBy(registry, next);
    if (lost.length > 0) {
      reportRefused(lost, logger);
      return false;
    }
    registry = next;
    reportBroken(next, logger);
    // An installed plugin's folder never changes; of the others any file may have.
    const unchanged = new Set(next.plugins.filter(({ locked }) => locked?.integrity).map(({ root }) => root));
    backends.worker.retire(({ root }) => unchanged.has(root));
    for (const listener of listeners) listener(next);
    return true;
  }

  /** One at a time: a change during a reload is seen by the next look at the file. */
  function reload(): Promise<boolean> {
    reloading ??= swap().finally(() => {
      reloading = undefined;
    });
    return reloading;
  }

  async function look(): Promise<void> {
    const now = await lockFileStamp(dataDir);
    if (now === stamp || reloading) return;
    stamp = now;
    await reload().catch((error) => logger.error('The plugins could not be read anew', { error }));
  }
  const stopWatching = every(systemClock, WATCH_MS, () => void look());

  const runtime: PluginRuntime = {
    get registry() {
      return registry;
    },
    describer,
    services,
    async execute({ plugin, ...call }, options) {
      const { id, version, root, manifest } = typeof plugin === 'string' ? registry.require(plugin) : plugin;
      const backend = backendFor(config.execution, id, backends);
      const request: ExecutionRequest = {
        ...call,
        executionId: call.executionId ?? random.uuid(),
        plugin: { id, version, root },
        config: ownValue(config.pluginConfig, id) ?? {},
        permissions: call.permissions ?? manifest.permissions,
        schemas: call.schemas ?? {},
        timeoutMs: call.timeoutMs ?? LIMITS.routeTimeoutMs,
      };
      // Whoever sent the id counts the call.
      if (call.executionId !== undefined) return backend.run(request, options);
      return track(request, manifest, () => backend.run(request, options));
    },
    read: load,
    reload,
    onReload(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async close() {
      stopWatching();
      await reloading?.catch(() => {});
      await Promise.all(Object.values(backends).map((backend) => backend.close()));
    },
  };
  return runtime;
}

/** What the plugin's own schema says of its entry under `pluginConfig`. */
async function configFaults(
  { id, version, root, manifest }: LoadedPlugin,
  settings: PlatformConfig['pluginConfig'],
  describer: PluginDescriber,
): Promise<PluginFault[]> {
  const where = `pluginConfig["${id}"]`;
  const fault = (path: string, message: string): PluginFault => ({
    code: 'VALIDATION_ERROR',
    path: 'configSchema',
    message: `${path === '' ? where : `${where}.${path}`} of svc.config.json: ${message}`,
  });
  try {
    const found = await describer.config(
      { id, version, root },
      manifest.configSchema!,
      ownValue(settings, id) ?? {},
    );
    return found.map(({ path, message }) => fault(path, message));
  } catch (error) {
    return [fault('', `cannot be checked: ${messageOf(error)}`)];
  }
}

/** The command of a loaded plugin. Throws PLUGIN_NOT_FOUND, or NOT_FOUND for a command it does not have. */
export function requireCommand(
  registry: PluginRegistry,
  pluginId: string,
  commandId: string,
): { plugin: LoadedPlugin; command: CommandDecl } {
  const plugin = registry.require(pluginId);
  const known = plugin.manifest.commands.map(({ id }) => id);
  const command = plugin.manifest.commands.find(({ id }) => id === commandId);
  if (command) return { plugin, command };
  const meant = nearest(commandId, known);
  throw new PlatformError(
    'NOT_FOUND',
    `The plugin ${pluginId} has no command "${commandId}"${meant ? `; did you mean "${meant}"?` : '.'}`,
    { details: { pluginId, commands: known } },
  );
}

/** What a call needs to know of a command's declaration. */
export function commandCall({ handler, input, output, timeoutMs, permissions }: CommandDecl) {
  return {
    handler,
    schemas: { ...(input ? { input } : {}), ...(output ? { output } : {}) },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(permissions ? { permissions } : {}),
  };
}

/** `ctx.invoke`: tenant, user and ids are those of the call it comes from. */
async function invokeCommand(
  runtime: PluginRuntime,
  { pluginId, commandId, input, from, depth, signal }: Invocation,
): Promise<CommandResult> {
  const { plugin, command } = requireCommand(runtime.registry, pluginId, commandId);
  const { user, tenantId, requestId, traceId, spanId } = from;
  return runtime.execute(
    {
      ...commandCall(command),
      plugin,
      host: 'plugin',
      hostContext: { host: 'plugin', from: from.plugin.id, depth },
      input,
      params: {},
      user,
      tenantId,
      requestId,
      traceId,
      ...(spanId === undefined ? {} : { parentSpanId: spanId }),
    },
    { signal },
  );
}

/**
 * Plugins that run and would not any more, because of a fault that came since. One whose files were tampered
 * with must go whatever runs.
 */
function lostBy(running: PluginRegistry, next: PluginRegistry): BrokenPlugin[] {
  return next.broken.filter(
    ({ id, faults }) =>
      id !== undefined &&
      running.find(id) !== undefined &&
      next.find(id) === undefined &&
      !faults.some(({ code }) => code === 'INTEGRITY_MISMATCH'),
  );
}

function reportRefused(lost: readonly BrokenPlugin[], logger: Logger): void {
  for (const { id, folder, faults } of lost) {
    logger.diagnostic(
      {
        domain: 'plugins',
        event: 'plugin.reload_refused',
        level: 'error',
        reasonCode: faults[0]?.code ?? 'INVALID_MANIFEST',
        message: `The plugins stay as they are, because ${id} would be lost: ${faultText(faults)}`,
        outcome: 'degraded',
        evidence: { folder, faults },
      },
      id === undefined ? {} : { pluginId: id },
    );
  }
}

function faultText(faults: readonly PluginFault[]): string {
  return faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ');
}

type Backends = ElsewhereBackends & { worker: WorkerBackend };

function createBackends(resources: Resources, invoke: InvokeCommand, createElsewhere: CreateElsewhere) {
  const { config, dataDir, logger, clock, analytics } = resources;
  const state = createStateAccess(resources);
  const services = createPlatformServices({ state, logger, clock, invoke, analytics });
  const worker = createWorkerBackend({ config: config.execution.worker, services, logger, clock, dataDir });
  const backends: Backends = { ...createElsewhere(services), worker };
  return { services, backends };
}

/** Never another backend than the one asked for: whoever asks for a container relies on its walls. */
function backendFor(
  execution: PlatformConfig['execution'],
  pluginId: string,
  backends: Backends,
): ExecutionBackend {
  return backends[ownValue(execution.plugins, pluginId)?.backend ?? execution.default];
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
        message: `The plugin ${id ?? folder} is left out: ${faultText(faults)}`,
        outcome: 'degraded',
        evidence: { folder, faults },
      },
      id ? { pluginId: id } : {},
    );
  }
}

import { type CommandResult, type ExecutionRequest, LIMITS } from '../../contracts/index.ts';
import { ownValue } from '../../kit/data/own-value.ts';
import { every, systemClock } from '../../kit/time/clock.ts';
import {
  createDescriber,
  createIntegrityCache,
  type InvokeCommand,
  type Kept,
  keepRunning,
  type LoadedPlugin,
  loadPlugins,
  lockFileStamp,
  type PlatformServices,
  type PluginDescriber,
  type PluginRegistry,
  projectSecrets,
  requireDeclaredHost,
  type SandboxInForce,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { backendFor, createBackends, type OwnParts } from './backends.ts';
import { createCodeCheck } from './code-check.ts';
import { invokeCommand } from './commands.ts';
import { executionEvents } from './execution-events.ts';
import { createPoolMetrics } from './metrics.ts';
import type { ExecuteOptions, PluginCall } from './plugin-call.ts';
import { retryWhileQueueFull } from './queue-retry.ts';
import { createPluginReports } from './reports.ts';
import { RunningCode } from './running-code.ts';
import { configFaults, settingsOf } from './settings.ts';

/** The project's plugins, ready to be called by a service. */
export interface PluginRuntime {
  /** State of the latest reload; do not cache it. */
  readonly registry: PluginRegistry;
  /** Describes plugins by running their code. */
  readonly describer: PluginDescriber;
  /** The sandbox of plugin code run by this service. Throws SANDBOX_ERROR. */
  sandbox(): Promise<SandboxInForce>;
  /** Services that handlers reach through their context. */
  readonly services: PlatformServices;
  /**
   * Runs a handler on its plugin's configured backend. Throws PLUGIN_NOT_FOUND, HOST_MISMATCH and errors of
   * `ExecutionBackend.run`.
   */
  execute(call: PluginCall, options?: ExecuteOptions): Promise<CommandResult>;
  /** Reads the plugins on disk without activating them. */
  read(): Promise<PluginRegistry>;
  /** Like `read`, merged with the plugins that a reload would keep running. */
  readBeside(): Promise<Kept>;
  /** Reloads the plugins; one that is running and now broken on disk keeps its running version. */
  reload(): Promise<void>;
  /**
   * Resolves once the current lock file is loaded. A failed reload is logged and keeps the previous state.
   */
  upToDate(): Promise<void>;
  /** Called after each reload, which waits for it; the returned function unsubscribes. */
  onReload(listener: (registry: PluginRegistry) => void | Promise<void>): () => void;
  /** Ends the plugins' processes; calls in flight fail. */
  close(): Promise<void>;
}

/** Poll interval of the lock file, in real time, as files change in it. */
const WATCH_MS = 250;

/**
 * Loads the plugins of the config and of the lock file, reports broken ones, prepares the backends, and reloads when
 * the lock file changes. @spec docs/decisions/0050
 */
export async function createPluginRuntime(resources: Resources, own: OwnParts = {}): Promise<PluginRuntime> {
  const { config, projectDir, dataDir, random, logger } = resources;
  const track = executionEvents(resources);
  const invoke: InvokeCommand = (invocation) => invokeCommand(runtime, invocation);
  const code = new RunningCode();
  const { services, backends } = createBackends(resources, invoke, code, own);
  createPoolMetrics(resources.metrics, backends.worker.stats);
  const describer = createDescriber(backends.worker, random);
  const integrity = createIntegrityCache();
  let isStarting = true;
  const checkCode = createCodeCheck(describer, code, logger, () => isStarting);
  const load = () =>
    loadPlugins({
      integrity,
      projectDir,
      patterns: config.plugins,
      dataDir,
      secrets: projectSecrets(resources),
      evaluate: describer.manifest,
      checkConfig: (plugin) => configFaults(plugin, config.pluginConfig, describer),
      checkCode,
    });
  const listeners = new Set<(registry: PluginRegistry) => void | Promise<void>>();
  let stamp = await lockFileStamp(dataDir);
  let registry: PluginRegistry;
  try {
    registry = await load();
    isStarting = false;
    // Read before any edit can replace the files.
    await code.settled();
    code.adopt(registry.plugins, []);
  } catch (error) {
    await backends.worker.close();
    throw error;
  }
  const report = createPluginReports(resources, own.reportsPlugins === true);
  report(registry, []);
  let reloading: Promise<void> | undefined;

  async function readBeside(): Promise<Kept> {
    const next = await load();
    await code.settled();
    return keepRunning(registry, next, (plugin) => code.canKeep(plugin));
  }

  async function swap(): Promise<void> {
    const { registry: next, kept } = await readBeside();
    registry = next;
    code.adopt(next.plugins, kept);
    report(next, kept);
    backends.worker.retire(runsOn(next, kept));
    await Promise.all([...listeners].map((listener) => listener(next)));
  }

  /** One at a time: the next poll notices a change during a reload. */
  function reload(): Promise<void> {
    reloading ??= swap().finally(() => {
      reloading = undefined;
    });
    return reloading;
  }

  async function upToDate(): Promise<void> {
    for (;;) {
      await reloading?.catch(() => {});
      const now = await lockFileStamp(dataDir);
      // A reload that started meanwhile may have read the file before this check.
      if (reloading) continue;
      if (now === stamp) return;
      stamp = now;
      await reload().catch((error) => logger.error('The plugins could not be reloaded', { error }));
    }
  }
  const stopWatching = every(systemClock, WATCH_MS, () => void upToDate());

  const runtime: PluginRuntime = {
    get registry() {
      return registry;
    },
    describer,
    sandbox: backends.worker.sandbox,
    services,
    async execute({ plugin, recordedSpanId, ...call }, options) {
      const { id, version, root, manifest } = typeof plugin === 'string' ? registry.require(plugin) : plugin;
      requireDeclaredHost(manifest, call.handler, call.host);
      const backend = backendFor(config.execution, id, backends, options?.target);
      const request: ExecutionRequest = {
        ...call,
        executionId: call.executionId ?? random.uuid(),
        plugin: { id, version, root },
        config: settingsOf(manifest, ownValue(config.pluginConfig, id)),
        permissions: call.permissions ?? manifest.permissions,
        schemas: call.schemas ?? {},
        timeoutMs: call.timeoutMs ?? LIMITS.routeTimeoutMs,
      };
      const run = (): Promise<CommandResult> => backend.run(request, options);
      // Waits inside the execution's record: otherwise each rejected attempt would count as a failed
      // execution.
      const runOnce = options?.waitsForQueue ? () => retryWhileQueueFull(options.signal, run) : run;
      // The caller records it; a second record would count it twice.
      if (recordedSpanId !== undefined) return backend.run({ ...request, spanId: recordedSpanId }, options);
      return track(request, manifest, runOnce);
    },
    read: load,
    readBeside,
    reload,
    upToDate,
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

/** Processes that may stay: installed plugins never change, any file of the others may have. */
function runsOn(
  { plugins }: PluginRegistry,
  kept: readonly LoadedPlugin[],
): (plugin: ExecutionRequest['plugin']) => boolean {
  const installed = plugins.filter(({ locked }) => locked?.integrity);
  const roots = new Set([...installed, ...kept].map(({ root }) => root));
  return ({ root }) => roots.has(root);
}

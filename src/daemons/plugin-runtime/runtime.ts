import { type CommandResult, type ExecutionRequest, LIMITS, type ManifestV3 } from '../../contracts/index.ts';
import { every, systemClock } from '../../kit/clock.ts';
import { ownValue } from '../../kit/own-value.ts';
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
  type RunOptions,
  requireDeclaredHost,
  type SandboxInForce,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { backendFor, createBackends, type OwnParts } from './backends.ts';
import { createCodeCheck } from './code-check.ts';
import { invokeCommand } from './commands.ts';
import { executionEvents } from './execution-events.ts';
import { createPoolMetrics } from './metrics.ts';
import { createPluginReports } from './reports.ts';
import { whenThereIsRoom } from './room.ts';
import { RunningCode } from './running-code.ts';
import { configFaults, settingsOf } from './settings.ts';

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
 * `schemas` are none unless given; `executionId` is made unless the caller chose one.
 */
export interface PluginCall
  extends Pick<ExecutionRequest, CallFields>,
    Partial<
      Pick<ExecutionRequest, 'executionId' | 'schemas' | 'permissions' | 'timeoutMs' | 'parentSpanId'>
    > {
  /** The span of a service that records this execution itself; otherwise it is recorded here. */
  recordedSpanId?: string;
  /** The plugin, or the id of a loaded one. */
  plugin: RunnablePlugin | string;
}

export interface ExecuteOptions extends RunOptions {
  /** Holds the call back while the queue of its plugin's processes is full, instead of failing it. */
  waitsForRoom?: boolean;
}

/** The project's plugins, ready to be called from a daemon. */
export interface PluginRuntime {
  /** As of the latest reload: ask for it anew each time. */
  readonly registry: PluginRegistry;
  /** Asks plugin code about itself. */
  readonly describer: PluginDescriber;
  /** What confines plugin code that this service runs. Throws SANDBOX_ERROR. */
  sandbox(): Promise<SandboxInForce>;
  /** What handlers reach through their context. */
  readonly services: PlatformServices;
  /**
   * Runs a handler where the config says its plugin runs. Resolves with what the handler returned; throws
   * PLUGIN_NOT_FOUND, HOST_MISMATCH and what `ExecutionBackend.run` throws.
   */
  execute(call: PluginCall, options?: ExecuteOptions): Promise<CommandResult>;
  /** The plugins as they are on disk now, without swapping them in. */
  read(): Promise<PluginRegistry>;
  /** The same, beside those that a reload would leave in place. */
  readBeside(): Promise<Kept>;
  /** Reads the plugins anew and swaps them in; one that runs and is broken on disk now runs on as it was. */
  reload(): Promise<void>;
  /** Settles once what the lock file says now is loaded. A reload that fails is logged, and leaves what was. */
  upToDate(): Promise<void>;
  /** Called after each swap, which is done once it has settled; the returned function ends it. */
  onReload(listener: (registry: PluginRegistry) => void | Promise<void>): () => void;
  /** Ends the plugins' processes; calls under way fail. */
  close(): Promise<void>;
}

/** How often the lock file is looked at; in real time, as files change in it. */
const WATCH_MS = 250;

/**
 * Loads the plugins of the config and of the lock file, reports those that are broken, makes ready what runs the
 * others, and does so again whenever the lock file changes. @spec docs/decisions/0050
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
    // An edit that came before would leave nothing to run on.
    await code.settled();
    code.adopt(registry.plugins, []);
  } catch (error) {
    await backends.worker.close();
    throw error;
  }
  const report = createPluginReports(resources, own.tellsOfPlugins === true);
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

  /** One at a time: a change during a reload is seen by the next look at the file. */
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
      // A reload that began meanwhile may have read what was there before this look.
      if (reloading) continue;
      if (now === stamp) return;
      stamp = now;
      await reload().catch((error) => logger.error('The plugins could not be read anew', { error }));
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
      // Held back within its record: each refused try would else count as a failed execution.
      const runOnce = options?.waitsForRoom ? () => whenThereIsRoom(options.signal, run) : run;
      // Two records of one execution would count it twice.
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

/** Whose processes stay: an installed plugin's folder never changes; of the others any file may have. */
function runsOn(
  { plugins }: PluginRegistry,
  kept: readonly LoadedPlugin[],
): (plugin: ExecutionRequest['plugin']) => boolean {
  const installed = plugins.filter(({ locked }) => locked?.integrity);
  const roots = new Set([...installed, ...kept].map(({ root }) => root));
  return ({ root }) => roots.has(root);
}

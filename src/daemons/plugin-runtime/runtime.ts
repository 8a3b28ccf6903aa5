import { type CommandResult, type ExecutionRequest, LIMITS } from '../../contracts/index.ts';
import { ownValue } from '../../kit/data/own-value.ts';
import { every, systemClock } from '../../kit/time/clock.ts';
import {
  createDescriber,
  createIntegrityCache,
  type ExecutionListeners,
  type Invocation,
  type Kept,
  keepRunning,
  type LoadedPlugin,
  loadPlugins,
  lockFileStamp,
  type PlatformServices,
  type PluginDescriber,
  type PluginRegistry,
  projectSecrets,
  readLockFile,
  requireDeclaredHost,
  type SandboxInForce,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { backendFor, createBackends, type OwnParts } from './backends.ts';
import { type CodeCheck, createCodeCheck } from './code-check.ts';
import { invokeCommand } from './commands.ts';
import { executionEvents, type TrackExecution } from './execution-events.ts';
import type { MaskedExecution } from './masked-execution.ts';
import { createPoolMetrics } from './metrics.ts';
import type { ExecuteOptions, PluginCall } from './plugin-call.ts';
import { retryWhileQueueFull } from './queue-retry.ts';
import { createPluginReports } from './reports.ts';
import { RunningCode } from './running-code.ts';
import { createSandboxCheck } from './sandbox-check.ts';
import { configFaults, settingsOf } from './settings.ts';

type ReloadListener = (registry: PluginRegistry) => void | Promise<void>;

/**
 * Poll interval of the lock file. Uses wall-clock time even with a test clock, because files change in wall-clock time.
 */
const WATCH_MS = 250;

/**
 * Loads the plugins of the project and runs their handlers for a service. Reloads the plugins when the lock file
 * changes. @spec docs/decisions/0050
 */
export class PluginRuntime {
  /** Describes plugins by running their code. */
  readonly describer: PluginDescriber;
  /** Services that handlers call through their context. */
  readonly services: PlatformServices;
  readonly #resources: Resources;
  readonly #backends: ReturnType<typeof createBackends>['backends'];
  readonly #listeners: ExecutionListeners;
  readonly #mask: MaskedExecution;
  readonly #code = new RunningCode();
  readonly #checkCode: CodeCheck;
  readonly #integrity = createIntegrityCache();
  readonly #track: TrackExecution;
  readonly #report: ReturnType<typeof createPluginReports>;
  readonly #reloadListeners = new Set<ReloadListener>();
  /** Registry of the loaded plugins. Undefined until the first load has ended. */
  #registry: PluginRegistry | undefined;
  /** Stamp (inode, modification time and size) of the lock file that the latest reload has read. */
  #stamp: string | undefined;
  /** Stamp (inode, modification time and size) of the lock file whose plugins are running. */
  #loadedStamp: string | undefined;
  /** Revision of the lock file whose plugins are running, or an earlier revision. */
  #loadedRevision = 0;
  /** Revision that the nodes of the store share. */
  #expectedRevision = 0;
  #reloading: Promise<void> | undefined;
  #stopWatching = (): void => {};

  /** Resolves once the plugins are loaded. */
  static async open(resources: Resources, own: OwnParts = {}): Promise<PluginRuntime> {
    const runtime = new PluginRuntime(resources, own);
    try {
      await runtime.#start();
    } catch (error) {
      await runtime.#backends.worker.close();
      throw error;
    }
    return runtime;
  }

  private constructor(resources: Resources, own: OwnParts) {
    const { logger, metrics, random } = resources;
    this.#resources = resources;
    this.#track = executionEvents(resources);
    const invoke = (invocation: Invocation) => invokeCommand(this, invocation);
    const { services, backends, listeners, mask } = createBackends(resources, invoke, this.#code, own);
    this.#mask = mask;
    this.#listeners = listeners;
    this.services = services;
    this.#backends = backends;
    createPoolMetrics(metrics, () => backends.worker.stats());
    this.describer = createDescriber(backends.worker, random);
    this.#checkCode = createCodeCheck(this.describer, this.#code, logger, () => !this.#registry);
    this.#report = createPluginReports(resources, own.reportsPlugins === true);
  }

  /** The plugins of the latest reload. Callers must not cache the registry. */
  get registry(): PluginRegistry {
    if (!this.#registry) throw new Error('The plugins are not loaded yet.');
    return this.#registry;
  }

  /**
   * Returns the sandbox of plugin code that this service runs. Throws SANDBOX_ERROR if the config requires a sandbox
   * that does not work.
   */
  sandbox(): Promise<SandboxInForce> {
    return this.#backends.worker.sandbox();
  }

  /**
   * Runs a handler on its plugin's configured backend. Throws PLUGIN_NOT_FOUND for an unknown plugin id, HOST_MISMATCH
   * if the manifest declares the handler only for other hosts, and the errors of `ExecutionBackend.run`.
   */
  async execute(
    { plugin, recordedSpanId, ...call }: PluginCall,
    options?: ExecuteOptions,
  ): Promise<CommandResult> {
    const { config, random } = this.#resources;
    const { id, version, root, manifest } =
      typeof plugin === 'string' ? this.registry.require(plugin) : plugin;
    requireDeclaredHost(manifest, call.handler, call.host);
    const backend = backendFor(config.execution, id, this.#backends, options?.target);
    const request: ExecutionRequest = {
      ...call,
      executionId: call.executionId ?? random.uuid(),
      plugin: { id, version, root },
      config: settingsOf(manifest, ownValue(config.pluginConfig, id)),
      permissions: call.permissions ?? manifest.permissions,
      schemas: call.schemas ?? {},
      timeoutMs: call.timeoutMs ?? LIMITS.routeTimeoutMs,
    };
    const run = (): Promise<CommandResult> =>
      this.#mask(request, options?.signal, () =>
        this.#listeners.during(request, options?.listener, () => backend.run(request, options)),
      );
    // All attempts belong to one recorded execution. Otherwise, each rejected attempt would count as a failed
    // execution.
    const runOnce = options?.waitsForQueue ? () => retryWhileQueueFull(options.signal, run) : run;
    // The caller records this execution. A second record would count the execution twice.
    if (recordedSpanId !== undefined) {
      request.spanId = recordedSpanId;
      return run();
    }
    return this.#track(request, manifest, runOnce);
  }

  /** Reads the plugins on disk without activating them. */
  read(): Promise<PluginRegistry> {
    const { config, projectDir, dataDir } = this.#resources;
    return loadPlugins({
      integrity: this.#integrity,
      projectDir,
      patterns: config.plugins,
      dataDir,
      secrets: projectSecrets(this.#resources),
      evaluate: this.describer.manifest,
      checkConfig: (plugin) => configFaults(plugin, config.pluginConfig, this.describer),
      checkCode: this.#checkCode,
      checkSandbox: createSandboxCheck(config.execution, () => this.sandbox()),
    });
  }

  /** Reads the plugins on disk like `read`, and adds the plugins that a reload would keep running. */
  async readBeside(): Promise<Kept> {
    const next = await this.read();
    await this.#code.settled();
    return keepRunning(this.registry, next, (plugin) => this.#code.canKeep(plugin));
  }

  /**
   * Reloads the plugins, one reload at a time. A running plugin that is now broken on disk keeps its running version.
   * The next poll handles changes made during a reload.
   */
  reload(): Promise<void> {
    this.#reloading ??= this.#swap().finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  /** Resolves once the current lock file is loaded. A failed reload is logged and keeps the previous state. */
  async upToDate(): Promise<void> {
    const { dataDir, logger } = this.#resources;
    for (;;) {
      await this.#reloading?.catch(() => {});
      const now = await lockFileStamp(dataDir);
      // A reload that started during the stamp check might have read an older file. The loop checks the stamp again.
      if (this.#reloading) continue;
      if (now === this.#stamp) return;
      this.#stamp = now;
      await this.reload().catch((error) => {
        // The next call tries again.
        this.#stamp = undefined;
        logger.error('The plugins could not be reloaded', { error });
      });
      if (this.#stamp === undefined) return;
    }
  }

  get loadedRevision(): number {
    return this.#loadedRevision;
  }

  /** Makes `isBehind` resolve to true until this revision of the lock file is loaded. */
  expectRevision(revision: number): void {
    this.#expectedRevision = revision;
  }

  /**
   * Returns whether the lock file has changes that are not loaded, because a reload runs or has failed, or another node
   * has changes that are not in the lock file yet.
   */
  async isBehind(): Promise<boolean> {
    if (this.#loadedRevision < this.#expectedRevision) return true;
    return (await lockFileStamp(this.#resources.dataDir)) !== this.#loadedStamp;
  }

  /**
   * Registers a listener that is called after each reload. The reload waits for the listener. The returned function
   * removes the listener.
   */
  onReload(listener: ReloadListener): () => void {
    this.#reloadListeners.add(listener);
    return () => void this.#reloadListeners.delete(listener);
  }

  /** Ends the plugins' processes. Calls in flight fail. */
  async close(): Promise<void> {
    this.#stopWatching();
    await this.#reloading?.catch(() => {});
    await Promise.all(Object.values(this.#backends).map((backend) => backend.close()));
  }

  async #start(): Promise<void> {
    while (!(await this.#tryLoad()));
    this.#stopWatching = every(systemClock, WATCH_MS, () => void this.upToDate());
  }

  /** Loads the plugins. Returns false if the marketplace has replaced plugins meanwhile, so that files were missing. */
  async #tryLoad(): Promise<boolean> {
    const { dataDir } = this.#resources;
    this.#stamp = await lockFileStamp(dataDir);
    try {
      await this.#load();
      return true;
    } catch (error) {
      if ((await lockFileStamp(dataDir)) === this.#stamp) throw error;
      return false;
    }
  }

  async #load(): Promise<void> {
    const revision = await this.#revisionOnDisk();
    const registry = await this.read();
    this.#registry = registry;
    // The files are read immediately, because a later edit might change them.
    await this.#code.settled();
    this.#code.adopt(registry.plugins, []);
    this.#loadedStamp = this.#stamp;
    this.#loadedRevision = revision;
    this.#report(registry, []);
  }

  async #swap(): Promise<void> {
    const stamp = this.#stamp;
    const revision = await this.#revisionOnDisk();
    const { registry: next, kept } = await this.readBeside();
    this.#registry = next;
    this.#code.adopt(next.plugins, kept);
    this.#report(next, kept);
    this.#backends.worker.retire(runsOn(next, kept));
    await Promise.all([...this.#reloadListeners].map((listener) => listener(next)));
    this.#loadedStamp = stamp;
    this.#loadedRevision = revision;
  }

  async #revisionOnDisk(): Promise<number> {
    return (await readLockFile(this.#resources.dataDir)).revision;
  }
}

/**
 * Returns a filter for the processes that continue to run after a reload. Only processes of installed plugins and kept
 * versions continue, because files of other plugins might have changed.
 */
function runsOn(
  { plugins }: PluginRegistry,
  kept: readonly LoadedPlugin[],
): (plugin: ExecutionRequest['plugin']) => boolean {
  const installed = plugins.filter(({ locked }) => locked?.integrity);
  const roots = new Set([...installed, ...kept].map(({ root }) => root));
  return ({ root }) => roots.has(root);
}

import { realpath } from 'node:fs/promises';
import process from 'node:process';
import type {
  CommandResult,
  ExecutionRequest,
  Permissions,
  PlatformConfig,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { ExecutionBackend, PlatformServices, RunOptions } from '../../execution.ts';
import type { RunnerLimits } from '../../runner/protocol.ts';
import {
  type Launch,
  prepareLaunch,
  type SandboxInForce,
  type SandboxStatus,
  sandboxInForce,
} from '../../sandbox/index.ts';
import { createPluginLogSink, LOG_BUDGET, type PluginLogSink } from '../../services/log.ts';
import type { SourceCode } from '../../source-code.ts';
import { Pool, type PoolStats } from './pool.ts';
import { RunnerProcess } from './runner-process.ts';
import { spawnRunner } from './spawn-runner.ts';

const MEGABYTE = 1024 * 1024;
export const RUNNER_LIMITS: RunnerLimits = {
  resultBytes: 6 * MEGABYTE,
  // A frame must have room for the largest result and for the other fields.
  frameBytes: 8 * MEGABYTE,
  logLinesPerSecond: LOG_BUDGET.linesPerSecond,
  logLinesAtOnce: LOG_BUDGET.linesAtOnce,
  logMessageChars: 8 * 1024,
};
const MAX_QUEUE = 512;

export interface WorkerBackendDeps {
  config: PlatformConfig['execution']['worker'];
  services: PlatformServices;
  logger: Logger;
  clock: Clock;
  /** Path of the project's data folder (`.svc`), which plugins must not read. */
  dataDir: string;
  /** Additional files and folders that plugins must not read. */
  secrets?: readonly string[];
  /**
   * Environment from which plugins receive the variables in `permissions.env`. The default is the environment of this
   * process.
   */
  environment?: NodeJS.ProcessEnv;
  /**
   * Callback that is called with the sandbox chosen for a plugin's processes, or with the reason why no sandbox works.
   */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
  /** Returns the original code of a plugin version whose files have changed since the version was loaded. */
  codeOf?: (plugin: ExecutionRequest['plugin']) => SourceCode | undefined;
  limits?: Partial<RunnerLimits>;
  /** Maximum queued calls per pool. Further calls fail with SERVICE_UNAVAILABLE. The default is 512. */
  maxQueue?: number;
}

type Plugin = ExecutionRequest['plugin'];

/**
 * Runs plugin code in reusable sandboxed processes. By default, a process runs one call at a time, so that a crash
 * affects only one call. @spec docs/operations.md "Where plugin code runs"
 */
export class WorkerBackend implements ExecutionBackend {
  readonly name = 'worker';
  readonly #deps: WorkerBackendDeps;
  readonly #limits: RunnerLimits;
  readonly #sink: PluginLogSink;
  readonly #pools = new Map<string, { plugin: Plugin; pool: Pool }>();
  /** Retired pools whose processes have not ended yet. */
  readonly #retired = new Set<Pool>();
  readonly #permissionKeys = new WeakMap<Permissions, string>();
  #isClosed = false;

  constructor(deps: WorkerBackendDeps) {
    this.#deps = deps;
    this.#limits = { ...RUNNER_LIMITS, ...deps.limits };
    this.#sink = createPluginLogSink(deps);
  }

  async run(request: ExecutionRequest, options: RunOptions = {}): Promise<CommandResult> {
    if (this.#isClosed) throw new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping.');
    const isShared = (request.permissions.quotas?.concurrency ?? 1) > 1;
    return this.#poolFor(request, isShared && options.alone === true).run(request, options);
  }

  /** Returns the sandbox in use. Throws SANDBOX_ERROR if the config requires a sandbox that does not work. */
  sandbox(): Promise<SandboxInForce> {
    return sandboxInForce(this.#deps.config.sandbox);
  }

  /** Returns one entry per plugin version and permission set with running processes. */
  stats(): PoolStats[] {
    return this.#allPools()
      .map((pool) => pool.stats())
      .filter(({ processes }) => processes > 0);
  }

  /**
   * Retires the processes of outdated plugins, for example after an update. Running calls finish on the old code. Later
   * calls start new processes.
   */
  retire(isCurrent: (plugin: Plugin) => boolean): void {
    for (const [key, { plugin, pool }] of this.#pools) {
      if (isCurrent(plugin)) continue;
      this.#pools.delete(key);
      this.#retired.add(pool);
      pool.retire();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#allPools().map((pool) => pool.close()));
    this.#pools.clear();
    this.#retired.clear();
  }

  #allPools(): Pool[] {
    return [...[...this.#pools.values()].map(({ pool }) => pool), ...this.#retired];
  }

  #keyOf({ plugin, permissions }: ExecutionRequest): string {
    let key = this.#permissionKeys.get(permissions);
    if (key === undefined) {
      key = JSON.stringify(permissions);
      this.#permissionKeys.set(permissions, key);
    }
    return `${plugin.root}\n${plugin.id}\n${plugin.version}\n${key}`;
  }

  #poolFor(request: ExecutionRequest, alone: boolean): Pool {
    const key = `${this.#keyOf(request)}${alone ? '\nalone' : ''}`;
    const found = this.#pools.get(key)?.pool;
    if (found) return found;
    const opened = this.#openPool(request, alone, () => {
      this.#retired.delete(opened);
      if (this.#pools.get(key)?.pool === opened) this.#pools.delete(key);
    });
    this.#pools.set(key, { plugin: request.plugin, pool: opened });
    return opened;
  }

  /** Opens a pool of processes. With `alone`, the pool has one process with one call at a time. */
  #openPool({ plugin, permissions }: ExecutionRequest, alone: boolean, onEmpty: () => void): Pool {
    const { config, services, logger, clock, codeOf, maxQueue = MAX_QUEUE } = this.#deps;
    // A manifest can lower the operator's memory limit, but not raise it.
    const memoryMb = Math.min(config.memoryMb, permissions.quotas?.memoryMb ?? config.memoryMb);
    let root = plugin.root;
    return new Pool({
      pluginId: plugin.id,
      maxProcesses: alone ? 1 : config.maxProcesses,
      // Programs of the plugin keep state in memory and files, which must not reach other tenants.
      separateTenants: config.isolation === 'tenant' || permissions.platform?.childProcess === 'sandboxed',
      concurrency: alone ? 1 : (permissions.quotas?.concurrency ?? 1),
      idleMs: config.idleMs,
      maxQueue: Math.min(permissions.quotas?.queue ?? MAX_QUEUE, maxQueue),
      clock,
      prepare: async () => {
        root = await realRoot(plugin);
        return this.#prepare(root, permissions, memoryMb);
      },
      start: (launch, events) =>
        new RunnerProcess(
          {
            spawn: (spawnEvents) => spawnRunner(launch, spawnEvents),
            plugin: { ...plugin, root },
            code: codeOf?.(plugin),
            permissions,
            memoryMb,
            limits: this.#limits,
            sink: this.#sink,
            services,
            logger,
            clock,
          },
          events,
        ),
      onEmpty,
    });
  }

  #prepare(root: string, permissions: Permissions, memoryMb: number): Promise<Launch> {
    const { config, dataDir, secrets = [], environment = process.env, onSandbox } = this.#deps;
    return prepareLaunch({
      ...{ root, permissions, memoryMb, preference: config.sandbox },
      ...{ dataDir, secrets, environment, onSandbox },
    });
  }
}

/**
 * Returns the path of the plugin's folder with symbolic links resolved. Throws SANDBOX_ERROR if the folder does not
 * exist.
 */
export async function realRoot(plugin: ExecutionRequest['plugin']): Promise<string> {
  try {
    return await realpath(plugin.root);
  } catch (cause) {
    throw new PlatformError('SANDBOX_ERROR', `The folder of plugin ${plugin.id} is gone: ${plugin.root}.`, {
      cause,
      details: { reason: 'folder_gone' },
    });
  }
}

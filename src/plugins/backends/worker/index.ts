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
import type { ExecutionBackend, PlatformServices } from '../../execution.ts';
import type { RunnerLimits } from '../../runner/protocol.ts';
import {
  prepareLaunch,
  type SandboxInForce,
  type SandboxStatus,
  sandboxInForce,
} from '../../sandbox/index.ts';
import { createPluginLogSink, LOG_BUDGET } from '../../services/log.ts';
import type { SourceCode } from '../../source-code.ts';
import { Pool, type PoolStats } from './pool.ts';
import { RunnerProcess } from './runner-process.ts';
import { spawnRunner } from './spawn-runner.ts';

const MEGABYTE = 1024 * 1024;
export const RUNNER_LIMITS: RunnerLimits = {
  resultBytes: 6 * MEGABYTE,
  // Room for the largest result after JSON escaping, plus the rest of the frame.
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
  /** The project's `.svc`, which no plugin may read. */
  dataDir: string;
  /** Files and folders next to the plugin that no plugin may read. */
  secrets?: readonly string[];
  /** Source of the variables granted by `permissions.env`; default: this process. */
  environment?: NodeJS.ProcessEnv;
  /** Called each time a plugin's process is prepared. */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
  /** Returns the code of a plugin version whose files have changed since; called for each process. */
  codeOf?: (plugin: ExecutionRequest['plugin']) => SourceCode | undefined;
  limits?: Partial<RunnerLimits>;
  /**
   * Maximum waiting calls per plugin; more fail with SERVICE_UNAVAILABLE. Default 512 (and 64 MiB of input).
   */
  maxQueue?: number;
}

export interface WorkerBackend extends ExecutionBackend {
  /** The sandbox in use. Throws SANDBOX_ERROR when the config requires one that does not work. */
  sandbox(): Promise<SandboxInForce>;
  /** One entry per plugin version and permission set with running processes. */
  stats(): PoolStats[];
  /**
   * Retires the processes of plugins for which `isCurrent` is false: running calls finish on their code, the
   * next call starts a new process.
   */
  retire(isCurrent: (plugin: ExecutionRequest['plugin']) => boolean): void;
}

/**
 * Runs plugin code in sandboxed child processes, kept warm per plugin. By default one call at a time per process, so
 * that a crash or hang affects that call only; `permissions.quotas.concurrency` allows sharing.
 * @spec docs/operations.md "Where plugin code runs"
 */
export function createWorkerBackend(deps: WorkerBackendDeps): WorkerBackend {
  const { config, services, logger, clock, dataDir, secrets = [], environment = process.env } = deps;
  const limits: RunnerLimits = { ...RUNNER_LIMITS, ...deps.limits };
  const sink = createPluginLogSink({ logger, clock });
  const pools = new Map<string, { plugin: ExecutionRequest['plugin']; pool: Pool }>();
  /** Retired pools whose processes have not ended yet. */
  const retired = new Set<Pool>();
  const permissionKeys = new WeakMap<Permissions, string>();
  let isClosed = false;

  function keyOf({ plugin, permissions }: ExecutionRequest): string {
    let key = permissionKeys.get(permissions);
    if (key === undefined) {
      key = JSON.stringify(permissions);
      permissionKeys.set(permissions, key);
    }
    return `${plugin.root}\n${plugin.id}\n${plugin.version}\n${key}`;
  }

  function poolFor(request: ExecutionRequest, alone: boolean): Pool {
    const key = `${keyOf(request)}${alone ? '\nalone' : ''}`;
    const pool = pools.get(key)?.pool;
    if (!pool) {
      const opened = openPool(request, alone, () => {
        retired.delete(opened);
        if (pools.get(key)?.pool === opened) pools.delete(key);
      });
      pools.set(key, { plugin: request.plugin, pool: opened });
      return opened;
    }
    return pool;
  }

  /** `alone`: a separate process for one call at a time. */
  function openPool({ plugin, permissions }: ExecutionRequest, alone: boolean, onEmpty: () => void): Pool {
    // The operator's figure is the maximum; a manifest can only lower it.
    const memoryMb = Math.min(config.memoryMb, permissions.quotas?.memoryMb ?? config.memoryMb);
    let root = plugin.root;
    return new Pool({
      pluginId: plugin.id,
      maxProcesses: alone ? 1 : config.maxProcesses,
      separateTenants: config.isolation === 'tenant',
      concurrency: alone ? 1 : (permissions.quotas?.concurrency ?? 1),
      idleMs: config.idleMs,
      maxQueue: Math.min(permissions.quotas?.queue ?? MAX_QUEUE, deps.maxQueue ?? MAX_QUEUE),
      clock,
      async prepare() {
        root = await realRoot(plugin);
        const preference = config.sandbox;
        const { onSandbox } = deps;
        return prepareLaunch({
          ...{ root, permissions, memoryMb, preference, dataDir, secrets, environment, onSandbox },
        });
      },
      start: (launch, events) =>
        new RunnerProcess(
          {
            spawn: (spawnEvents) => spawnRunner(launch, spawnEvents),
            plugin: { ...plugin, root },
            code: deps.codeOf?.(plugin),
            permissions,
            memoryMb,
            limits,
            services,
            sink,
            logger,
            clock,
          },
          events,
        ),
      onEmpty,
    });
  }

  const allPools = (): Pool[] => [...[...pools.values()].map(({ pool }) => pool), ...retired];

  return {
    name: 'worker',
    async run(request, options = {}): Promise<CommandResult> {
      if (isClosed) throw new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping.');
      const isShared = (request.permissions.quotas?.concurrency ?? 1) > 1;
      return poolFor(request, isShared && options.alone === true).run(request, options);
    },
    sandbox: () => sandboxInForce(config.sandbox),
    retire(isCurrent) {
      for (const [key, { plugin, pool }] of pools) {
        if (isCurrent(plugin)) continue;
        pools.delete(key);
        retired.add(pool);
        pool.retire();
      }
    },
    stats: () =>
      allPools()
        .map((pool) => pool.stats())
        .filter(({ processes }) => processes > 0),
    async close() {
      isClosed = true;
      await Promise.all(allPools().map((pool) => pool.close()));
      pools.clear();
      retired.clear();
    },
  };
}

/** The plugin's real folder. Throws SANDBOX_ERROR when it does not exist. */
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

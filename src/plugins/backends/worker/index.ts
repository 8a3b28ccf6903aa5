import { realpath } from 'node:fs/promises';
import process from 'node:process';
import type {
  CommandResult,
  ExecutionRequest,
  Permissions,
  PlatformConfig,
} from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
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
import { createPool, type Pool, type PoolStats } from './pool.ts';
import { startRunnerProcess } from './runner-process.ts';
import { spawnRunner } from './spawn-runner.ts';

const MEGABYTE = 1024 * 1024;
export const RUNNER_LIMITS: RunnerLimits = {
  resultBytes: 6 * MEGABYTE,
  // Room for the frame around the largest result, and for what JSON makes of its characters.
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
  /** The project's `.svc`, which no plugin may see. */
  dataDir: string;
  /** Files and folders beside it that no plugin may see. */
  secrets?: readonly string[];
  /** Where the variables that `permissions.env` names come from; default: this process's. */
  environment?: NodeJS.ProcessEnv;
  /** Called each time a plugin's process is prepared. */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
  /** The code of a version whose files are others by now; asked for each process. */
  codeOf?: (plugin: ExecutionRequest['plugin']) => SourceCode | undefined;
  limits?: Partial<RunnerLimits>;
  /** Calls that may wait per plugin; beyond it SERVICE_UNAVAILABLE. Default 512 (and 64 MiB of input). */
  maxQueue?: number;
}

export interface WorkerBackend extends ExecutionBackend {
  /** What confines the processes it starts. Throws SANDBOX_ERROR when the config demands a sandbox that does not work. */
  sandbox(): Promise<SandboxInForce>;
  /** One entry per plugin version and set of permissions that has processes. */
  stats(): PoolStats[];
  /**
   * Sets aside the processes of every plugin that `isCurrent` denies: their calls finish on the code they began
   * with, the next call of such a plugin starts a fresh process.
   */
  retire(isCurrent: (plugin: ExecutionRequest['plugin']) => boolean): void;
}

/**
 * Runs plugin code in confined child processes, kept warm per plugin. One call at a time per process, so
 * that a crash, a hang or a blocked loop costs that call alone; `permissions.quotas.concurrency` lets an
 * I/O-bound plugin share a process between calls, which then share its fate.
 * @spec docs/operations.md "Where plugin code runs"
 */
export function createWorkerBackend(deps: WorkerBackendDeps): WorkerBackend {
  const { config, services, logger, clock, dataDir, secrets = [], environment = process.env } = deps;
  const limits: RunnerLimits = { ...RUNNER_LIMITS, ...deps.limits };
  const sink = createPluginLogSink({ logger, clock });
  const pools = new Map<string, { plugin: ExecutionRequest['plugin']; pool: Pool }>();
  /** Set aside and not gone yet. */
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

  /** `alone`: one process beside the others, for one call at a time. */
  function openPool({ plugin, permissions }: ExecutionRequest, alone: boolean, onEmpty: () => void): Pool {
    // The operator's figure is the ceiling; a manifest can only ask for less.
    const memoryMb = Math.min(config.memoryMb, permissions.quotas?.memoryMb ?? config.memoryMb);
    let root = plugin.root;
    return createPool({
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
        startRunnerProcess(
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

/** The plugin's folder without links. Throws SANDBOX_ERROR when it is gone. */
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

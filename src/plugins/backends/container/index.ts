import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import type { ExecutionBackend, PlatformServices, RunOptions } from '../../execution.ts';
import { resolveGrants } from '../../sandbox/grants.ts';
import { createPluginLogSink } from '../../services/log.ts';
import type { SourceCode } from '../../source-code.ts';
import { type Call, cancelled, createCall, unavailable } from '../worker/call.ts';
import { lostProcess } from '../worker/exit-reason.ts';
import { RUNNER_LIMITS, realRoot } from '../worker/index.ts';
import { captureOutput } from '../worker/output-capture.ts';
import { RunnerProcess } from '../worker/runner-process.ts';
import type { SpawnEvents, SpawnedRunner } from '../worker/spawn-runner.ts';
import { splitStreams } from './attached.ts';
import { createEngine, type Engine } from './engine.ts';
import { createLimitCheck } from './limits.ts';
import { createSlots } from './slots.ts';
import { type ContainerAccess, type ContainerConfig, containerSpec, memoryMbOf } from './spec.ts';

const REMOVAL_TRIES = 6;
const REMOVAL_PAUSE_MS = 150;
const OWNER_LABEL = 'svc.owner';
const BOOT_LABEL = 'svc.boot';
/** Grace period for a process that was asked to exit, or whose handler may still react to `ctx.signal`. */
const LEAVE_MS = seconds(1);

export interface ContainerBackendDeps {
  config: ContainerConfig;
  services: PlatformServices;
  logger: Logger;
  clock: Clock;
  /** The project's `.svc`, used as a container label so that several platforms can share an engine. */
  dataDir: string;
  /** Files and folders next to the plugin that no plugin may read. */
  secrets?: readonly string[];
  issueAccess(request: ExecutionRequest): Promise<ContainerAccess>;
  environment?: NodeJS.ProcessEnv;
  /** Returns the code of a plugin version whose files have changed since; called for each container. */
  codeOf?: (plugin: ExecutionRequest['plugin']) => SourceCode | undefined;
}

export interface ContainerBackend extends ExecutionBackend {
  /**
   * Removes containers left by an earlier process of this platform; returns their number. Throws
   * SANDBOX_ERROR.
   */
  removeOrphans(): Promise<number>;
}

/**
 * Runs each execution in its own container, with the same runner and frames as a worker, over stdin and stdout.
 * @spec Container execution JWT; docs/operations.md "Where plugin code runs"
 */
export function createContainerBackend(deps: ContainerBackendDeps): ContainerBackend {
  const { config, services, logger, clock, dataDir, secrets = [], environment = process.env } = deps;
  const engine = createEngine(config.socket);
  const sink = createPluginLogSink({ logger, clock });
  const boot = randomUUID();
  const owner = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const requireLimits = createLimitCheck({ engine, config, logger });
  const slots = createSlots(config.maxContainers);
  const leaving = new Set<Promise<void>>();
  const closing = new AbortController();

  /** `leave` releases the slot; called once nothing runs in it. */
  async function execute(call: Call, leave: () => void): Promise<CommandResult> {
    const { request } = call;
    const exit = Promise.withResolvers<void>();
    let access: ContainerAccess | undefined;
    let id: string | undefined;
    try {
      const root = await realRoot(request.plugin);
      const grants = await resolveGrants({ root, permissions: request.permissions, dataDir, secrets });
      access = await deps.issueAccess(request);
      const labels = {
        [OWNER_LABEL]: owner,
        [BOOT_LABEL]: boot,
        'svc.execution': request.executionId,
        'svc.plugin': request.plugin.id,
      };
      const given = { grants, config, labels, environment, access };
      const spec = await containerSpec({ request, root, ...given });
      id = await engine.create(spec);
      await requireLimits(id);
      return await runIn(id, call, root, exit.resolve);
    } finally {
      // Revoke the token first: it could be used from outside the container.
      await access?.end();
      if (id === undefined) leave();
      else removeLater(id, exit.promise, leave);
    }
  }

  async function runIn(id: string, call: Call, root: string, onExit: () => void): Promise<CommandResult> {
    const { request } = call;
    if (call.isSettled) return call.promise;
    const socket = await engine.attach(id);
    // Always started: Podman cannot remove a container that was attached but never started.
    await engine.start(id);
    if (call.isSettled) {
      socket.destroy();
      return call.promise;
    }
    const container = containerRunner(engine, id, socket);
    const runner = new RunnerProcess(
      {
        spawn: container.spawn,
        plugin: { ...request.plugin, root },
        permissions: request.permissions,
        memoryMb: memoryMbOf(config, request),
        limits: RUNNER_LIMITS,
        services,
        sink,
        logger,
        clock,
        code: deps.codeOf?.(request.plugin),
      },
      {
        onReady() {
          if (call.isSettled) runner.end({ kind: 'cancelled' });
          else runner.assign(call);
        },
        onFree: () => runner.end({ kind: 'idle' }),
        onLoaded: () => {},
        onExit(exit) {
          onExit();
          call.reject(lostProcess(exit, request.plugin.id));
        },
      },
    );
    const onClose = (): void => runner.end({ kind: 'closing' });
    closing.signal.addEventListener('abort', onClose, { once: true });
    // Closed while the container was created: the listener will not fire any more.
    if (closing.signal.aborted) onClose();
    // A running handler gets its abort signal and a moment to stop by itself.
    call.promise.catch(() => runner.isReady || runner.end({ kind: 'cancelled' }));
    try {
      return await call.promise;
    } finally {
      closing.signal.removeEventListener('abort', onClose);
    }
  }

  /** Runs after the caller has its result; removes the container once it stops, or after a grace period. */
  function removeLater(id: string, stopped: Promise<void>, leave: () => void): void {
    const late = closing.signal.aborted ? Promise.resolve() : pause(LEAVE_MS);
    const removal = Promise.race([stopped, late])
      .then(leave)
      .then(() => remove(id))
      .finally(() => leaving.delete(removal));
    leaving.add(removal);
  }

  async function remove(id: string): Promise<void> {
    try {
      // An engine that is still stopping the container briefly answers 409 or 500.
      for (let tries = 1; ; tries++) {
        try {
          return await engine.remove(id);
        } catch (error) {
          if (tries === REMOVAL_TRIES) throw error;
          await pause(REMOVAL_PAUSE_MS * tries);
        }
      }
    } catch (error) {
      logger.diagnostic({
        domain: 'plugins',
        event: 'container.not_removed',
        level: 'error',
        reasonCode: 'CONTAINER_NOT_REMOVED',
        message: `The container ${id.slice(0, 12)} could not be removed; the next start retries: ${messageOf(error)}`,
        outcome: 'failed',
        error,
      });
    }
  }

  return {
    name: 'container',
    async run(request, options: RunOptions = {}) {
      if (closing.signal.aborted) throw unavailable('The platform is stopping.', 5);
      if (options.signal?.aborted) throw cancelled(request);
      const call = createCall(request, options);
      // `execute` handles the rejection; until then it must not count as unhandled.
      call.promise.catch(() => {});
      const leave = await slots.enter(call);
      // Covers the time until the process takes over cancellation: creating a container takes a moment.
      call.cancelWith(() => call.reject(cancelled(request)));
      return execute(call, leave);
    },
    async removeOrphans() {
      if (!existsSync(config.socket)) return 0;
      const found = await engine.list(`${OWNER_LABEL}=${owner}`);
      const orphans = found.filter(({ labels }) => labels[BOOT_LABEL] !== boot);
      await Promise.all(orphans.map(({ id }) => remove(id)));
      return orphans.length;
    },
    async close() {
      closing.abort();
      slots.close();
      await slots.idle();
      await Promise.all(leaving);
      await engine.close();
    },
  };
}

/** Adapts a running container to the interface that `RunnerProcess` expects of a process. */
function containerRunner(engine: Engine, id: string, socket: Awaited<ReturnType<Engine['attach']>>) {
  const { channel, stderr } = splitStreams(socket);
  let said = '';

  function spawn(events: SpawnEvents): SpawnedRunner {
    const output = captureOutput(stderr, systemClock, (line) => events.onLine('stderr', line));
    let isGone = false;
    async function finish(): Promise<void> {
      if (isGone) return;
      isGone = true;
      const state = await engine.state(id).catch(() => undefined);
      said = output.tail();
      // The OOM killer leaves no message; the engine knows the cause.
      if (state?.ranOutOfMemory) said += '\nheap out of memory';
      const code = state?.exitCode ?? null;
      if (code !== null && code > 128) events.onExit(null, signalName(code - 128));
      else events.onExit(code, null);
    }
    socket.on('close', () => void finish());
    socket.on('end', () => void finish());
    return {
      channel,
      pid: undefined,
      // The engine itself limits all of a container's memory.
      memoryFolders: [],
      stderrTail: () => said,
      leave() {
        channel.end();
        systemClock.after(LEAVE_MS, () => socket.destroy());
      },
      // The container is removed right after; this only stops listening to it.
      kill: () => socket.destroy(),
    };
  }
  return { spawn };
}

function signalName(number: number): string {
  return number === 9 ? 'SIGKILL' : number === 15 ? 'SIGTERM' : `signal ${number}`;
}

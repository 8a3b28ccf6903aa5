import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { ExecutionBackend, PlatformServices, RunOptions } from '../../execution.ts';
import { resolveGrants } from '../../sandbox/grants.ts';
import { createPluginLogSink, type PluginLogSink } from '../../services/log.ts';
import type { SourceCode } from '../../source-code.ts';
import { type Call, cancelled, createCall, unavailable } from '../worker/call.ts';
import { lostProcess } from '../worker/exit-reason.ts';
import { RUNNER_LIMITS, realRoot } from '../worker/index.ts';
import { RunnerProcess } from '../worker/runner-process.ts';
import { type AttachedContainer, containerRunner, LEAVE_MS } from './container-runner.ts';
import { Engine } from './engine.ts';
import { createLimitCheck } from './limits.ts';
import { removeContainer } from './remove-container.ts';
import { Slots } from './slots.ts';
import { type ContainerAccess, type ContainerConfig, containerSpec, memoryMbOf } from './spec.ts';

const OWNER_LABEL = 'svc.owner';
const BOOT_LABEL = 'svc.boot';

export interface ContainerBackendDeps {
  config: ContainerConfig;
  services: PlatformServices;
  logger: Logger;
  clock: Clock;
  /** Path of the project's data folder (`.svc`). */
  dataDir: string;
  /**
   * Name that identifies the containers of this process. The data folder path is not sufficient, because several pods
   * can use the same path and share a container engine.
   */
  instance: string;
  /** Names of processes that have ended. Their containers are orphans as well. */
  endedInstances?: readonly string[];
  /** Additional files and folders that plugins must not read. */
  secrets?: readonly string[];
  issueAccess(request: ExecutionRequest): Promise<ContainerAccess>;
  environment?: NodeJS.ProcessEnv;
  /** Returns the original code of a plugin version whose files have changed since the version was loaded. */
  codeOf?: (plugin: ExecutionRequest['plugin']) => SourceCode | undefined;
}

/**
 * Returns the owner label of a process's containers. The label stays the same after a restart, so that the process can
 * remove the orphans of its previous run.
 */
export function containerOwner({
  dataDir,
  instance,
}: Pick<ContainerBackendDeps, 'dataDir' | 'instance'>): string {
  return createHash('sha256')
    .update(JSON.stringify([dataDir, instance]))
    .digest('hex')
    .slice(0, 16);
}

/**
 * Runs each execution in a new container, with the same runner program as the worker backend. @spec Container execution
 * JWT; docs/operations.md "Where plugin code runs"
 */
export class ContainerBackend implements ExecutionBackend {
  readonly name = 'container';
  readonly #deps: ContainerBackendDeps;
  readonly #engine: Engine;
  readonly #sink: PluginLogSink;
  readonly #boot = randomUUID();
  readonly #owner: string;
  readonly #requireLimits: (id: string) => Promise<void>;
  readonly #slots: Slots;
  readonly #removals = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: ContainerBackendDeps) {
    const { config, logger, clock } = deps;
    this.#deps = deps;
    this.#engine = new Engine(config.socket);
    this.#sink = createPluginLogSink({ logger, clock });
    this.#owner = containerOwner(deps);
    this.#requireLimits = createLimitCheck({ engine: this.#engine, config, logger });
    this.#slots = new Slots(config.maxContainers);
  }

  async run(request: ExecutionRequest, options: RunOptions = {}): Promise<CommandResult> {
    if (this.#closing.signal.aborted) throw unavailable('The platform is stopping.', 5);
    if (options.signal?.aborted) throw cancelled(request);
    const call = createCall(request, options);
    // The call can be rejected before `#execute` awaits its promise. The empty handler prevents an unhandled rejection.
    call.promise.catch(() => {});
    const leave = await this.#slots.enter(call);
    // Until a process runs the call, cancelling the call only rejects its promise.
    call.cancelWith(() => call.reject(cancelled(request)));
    return this.#execute(call, leave);
  }

  /**
   * Removes containers of earlier processes of this instance, and containers of ended instances. Returns the number of
   * removed containers.
   */
  async removeOrphans(): Promise<number> {
    const { config, logger, dataDir, instance, endedInstances = [] } = this.#deps;
    if (!existsSync(config.socket)) return 0;
    const names = [instance, ...endedInstances];
    const owners = new Set<unknown>(names.map((name) => containerOwner({ dataDir, instance: name })));
    const found = await this.#engine.list(OWNER_LABEL);
    const orphans = found.filter(
      ({ labels }) => owners.has(labels[OWNER_LABEL]) && labels[BOOT_LABEL] !== this.#boot,
    );
    await Promise.all(orphans.map(({ id }) => removeContainer(this.#engine, logger, id)));
    return orphans.length;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#slots.close();
    await this.#slots.idle();
    await Promise.all(this.#removals);
    await this.#engine.close();
  }

  /** Runs a call in a new container, and calls `leave` afterwards to release the slot. */
  async #execute(call: Call, leave: () => void): Promise<CommandResult> {
    const { request } = call;
    const exit = Promise.withResolvers<void>();
    let access: ContainerAccess | undefined;
    let id: string | undefined;
    try {
      const root = await realRoot(request.plugin);
      const { config, dataDir, secrets = [], environment = process.env } = this.#deps;
      const grants = await resolveGrants({ root, permissions: request.permissions, dataDir, secrets });
      access = await this.#deps.issueAccess(request);
      const given = { grants, config, labels: this.#labelsFor(request), environment, access };
      const spec = await containerSpec({ request, root, ...given });
      id = await this.#engine.create(spec);
      await this.#requireLimits(id);
      return await this.#runIn(id, call, root, exit.resolve);
    } finally {
      // The token is revoked first, because plugin code could have sent the token out of the container.
      await access?.end();
      if (id === undefined) leave();
      else this.#removeLater(id, exit.promise, leave);
    }
  }

  #labelsFor({ executionId, plugin }: ExecutionRequest): Record<string, string> {
    return {
      [OWNER_LABEL]: this.#owner,
      [BOOT_LABEL]: this.#boot,
      'svc.execution': executionId,
      'svc.plugin': plugin.id,
    };
  }

  async #runIn(id: string, call: Call, root: string, onExit: () => void): Promise<CommandResult> {
    if (call.isSettled) return call.promise;
    const engine = this.#engine;
    const socket = await engine.attach(id);
    // Podman cannot remove a container that was attached but not started. The container is therefore started even if
    // the call was cancelled.
    await engine.start(id);
    if (call.isSettled) {
      socket.destroy();
      return call.promise;
    }
    const runner = this.#startRunner({ engine, id, socket }, call, root, onExit);
    const { signal } = this.#closing;
    const onClose = (): void => runner.end({ kind: 'closing' });
    signal.addEventListener('abort', onClose, { once: true });
    // The abort event of a closed backend has already fired, so the listener would not be called.
    if (signal.aborted) onClose();
    // If a call is rejected before its runner is ready, the runner ends at once. A ready runner first aborts the
    // handler.
    call.promise.catch(() => runner.isReady || runner.end({ kind: 'cancelled' }));
    try {
      return await call.promise;
    } finally {
      signal.removeEventListener('abort', onClose);
    }
  }

  #startRunner(container: AttachedContainer, call: Call, root: string, onExit: () => void): RunnerProcess {
    const { request } = call;
    const { config, services, logger, clock } = this.#deps;
    const runner = new RunnerProcess(
      {
        spawn: (events) => containerRunner(container, events),
        plugin: { ...request.plugin, root },
        permissions: request.permissions,
        memoryMb: memoryMbOf(config, request),
        limits: RUNNER_LIMITS,
        services,
        sink: this.#sink,
        logger,
        clock,
        code: this.#deps.codeOf?.(request.plugin),
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
    return runner;
  }

  /** Removes the container once it has stopped, or after a grace period. The caller does not wait for the removal. */
  #removeLater(id: string, stopped: Promise<void>, leave: () => void): void {
    const late = this.#closing.signal.aborted ? Promise.resolve() : pause(LEAVE_MS);
    const removal = Promise.race([stopped, late])
      .then(leave)
      .then(() => removeContainer(this.#engine, this.#deps.logger, id))
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}

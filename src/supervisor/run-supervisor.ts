import { SERVICE_NAMES, type ServiceName } from '../contracts/index.ts';
import { requireClusterSettings } from '../kit/config/cluster.ts';
import type { LoadedConfig } from '../kit/config/config.ts';
import { requireServiceSet } from '../kit/config/service-set.ts';
import { postgresUrlOf } from '../kit/config/store-url.ts';
import { instanceId } from '../kit/files/instance-id.ts';
import { version } from '../kit/files/paths.ts';
import type { Random } from '../kit/security/random.ts';
import type { LogLevel } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import { brokenPlugins } from './broken-plugins.ts';
import type { BrokenPlugin, SupervisorEvent, SupervisorStatus } from './control-protocol.ts';
import { type ControlActions, startControlServer } from './control-server.ts';
import { noteCrashLoop } from './crash-loops.ts';
import { type DataFolder, dataFolder, ensureDataFolder } from './data-folder.ts';
import { lockFolder, lockServices } from './folder-lock.ts';
import { loadSecrets, reloadSecrets, type Secrets } from './keys-file.ts';
import { logEvent } from './log-event.ts';
import { awaitOrphans } from './orphans.ts';
import { identify } from './process-identity.ts';
import { removeRunFile, writeRunFile } from './run-file.ts';
import { Supervisor } from './supervisor.ts';
import { type LogSource, SupervisorLogs } from './supervisor-logs.ts';

export interface RunOptions {
  loadConfig: () => LoadedConfig;
  /** Services that this node runs. The default is all services. */
  services?: readonly ServiceName[] | undefined;
  clock: Clock;
  random: Random;
  logLevel?: LogLevel;
  onEvent: (event: SupervisorEvent) => void;
  /** Receives all lines of the log files, so that a terminal can show them. */
  onLines?: (source: LogSource, lines: Buffer) => void;
}

export interface RunningSupervisor {
  firstStart: boolean;
  /**
   * Resolves when all services are ready. If a service fails to start, stops all services and rejects with the cause.
   */
  ready: Promise<void>;
  /** Resolves when all services have stopped and the data folder is unlocked. */
  ended: Promise<void>;
  status(): Promise<SupervisorStatus>;
  /** Returns the plugins that failed to load. The result is only complete after `ready` has resolved. */
  brokenPlugins(): Promise<BrokenPlugin[]>;
  /** Drains and stops the services in reverse order. Further calls have no effect. */
  stop(): void;
  kill(): void;
}

/** Locks the data folder and runs the platform in it. Throws CONFLICT if another supervisor holds the lock. */
export async function runSupervisor(options: RunOptions): Promise<RunningSupervisor> {
  const { clock, random, onLines, onEvent, services = SERVICE_NAMES } = options;
  const loaded = options.loadConfig();
  requireClusterSettings(loaded.config, loaded.env);
  requireServiceSet(services, loaded);
  const folder = dataFolder(loaded.dataDir);
  ensureDataFolder(folder);
  const resources = new AsyncDisposableStack();
  try {
    const lock = await lockFolder(folder);
    resources.defer(() => lock.release());
    const { retention, store } = loaded.config;
    const postgresUrl = postgresUrlOf(store, loaded.env);
    if (postgresUrl !== null) resources.use(await lockServices(folder, services, 'svc up'));
    const node = instanceId(folder.root, loaded.env, random);
    const logs = new SupervisorLogs({ folder, retention, postgresUrl, node, clock, onLines });
    resources.defer(() => logs.close());
    resources.defer(() => removeRunFile(folder));
    const report = (event: SupervisorEvent): void => {
      logEvent(logs.logger, event);
      if (event.type === 'crash-loop')
        noteCrashLoop(folder.root, event, { node, clock, logger: logs.logger });
      onEvent(event);
    };
    await awaitOrphans(folder, loaded.config, (reason) => report({ type: 'waiting', reason }));
    const secrets = loadSecrets(folder, loaded.env, random);
    const platform = new Platform({
      ...options,
      ...{ loaded, folder, secrets, logs, resources, services, onEvent: report },
    });
    const control = await startControlServer(folder, platform);
    resources.defer(() => control.close());
    return platform.begin(control.socket);
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

interface PlatformOptions extends Omit<RunOptions, 'onLines'> {
  loaded: LoadedConfig;
  services: readonly ServiceName[];
  folder: DataFolder;
  secrets: Secrets;
  logs: SupervisorLogs;
  /** Resources that are disposed when all services have stopped. */
  resources: AsyncDisposableStack;
}

/** Runs the services of a locked data folder and keeps the run file up to date. */
class Platform implements ControlActions {
  readonly #options: PlatformOptions;
  readonly #supervisor: Supervisor;
  readonly #startedAt: number;
  readonly #ended = Promise.withResolvers<void>();
  /** Path of the control socket. Undefined until the socket is open. */
  #socket: string | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: PlatformOptions) {
    const { folder, random, logs, clock } = options;
    this.#options = options;
    this.#startedAt = clock.monotonic();
    this.#supervisor = new Supervisor({
      ...options,
      reloadSecrets: (env) => reloadSecrets(folder, env, random),
      logger: logs.logger,
      onLines: (source, lines) => logs.write(source, lines),
      onProcesses: () => this.#tryWriteRunFile(),
    });
  }

  /** Starts the services. The control socket must be open, because the run file contains its path. */
  begin(socket: string): RunningSupervisor {
    this.#socket = socket;
    this.#writeRunFile();
    const { created, keys } = this.#options.secrets;
    const urlOf = (name: ServiceName): string | null =>
      this.#supervisor.services().find((service) => service.name === name)?.url ?? null;
    return {
      firstStart: created,
      ready: this.#start(),
      ended: this.#ended.promise,
      status: () => this.status(),
      brokenPlugins: () => brokenPlugins(urlOf('marketplace'), keys.internalSecret),
      stop: () => void this.stop(),
      kill: () => this.#supervisor.kill(),
    };
  }

  async status(): Promise<SupervisorStatus> {
    const sandbox = await this.#supervisor.sandbox();
    const { profile, projectDir, dataDir, configFile } = this.#options.loaded;
    const uptimeMs = this.#options.clock.monotonic() - this.#startedAt;
    return {
      ...{ pid: process.pid, version, profile, projectDir, dataDir, configFile, uptimeMs },
      services: this.#supervisor.services(),
      sandbox,
    };
  }

  stop(): Promise<void> {
    if (!this.#stopping) {
      const { resolve, reject } = this.#ended;
      this.#stopping = this.#supervisor.stop();
      this.#stopping.then(() => this.#options.resources.disposeAsync()).then(resolve, reject);
    }
    return this.#stopping;
  }

  restart(name: ServiceName | null): Promise<void> {
    return this.#supervisor.restart(name);
  }

  async #start(): Promise<void> {
    try {
      await this.#supervisor.start();
    } catch (error) {
      await this.stop();
      await this.#ended.promise;
      throw error;
    }
    this.#options.logs.startTelemetry();
    // The result is not awaited, because the sandbox detection starts a process and would delay the services.
    void this.#supervisor.sandbox();
  }

  #writeRunFile(): void {
    if (this.#socket === undefined) return;
    const all = this.#supervisor.services();
    const children = all
      .flatMap(({ name, pid, url, furtherProcesses = [] }) =>
        [pid, ...furtherProcesses.map((further) => further.pid)].map((each) => ({ name, url, pid: each })),
      )
      .flatMap(({ pid, ...child }) => (pid === null ? [] : [{ ...child, ...identify(pid) }]));
    const { folder } = this.#options;
    const services = all.map(({ name, pid, restarts, lastExit }) => ({
      ...{ name, restarts, lastExit },
      isRunning: pid !== null,
    }));
    const supervisor = identify(process.pid);
    writeRunFile(folder, { supervisor, socket: this.#socket, children, services });
  }

  /** Writes the run file. A failure is only logged, because a full disk must not stop the platform. */
  #tryWriteRunFile(): void {
    try {
      this.#writeRunFile();
    } catch (error) {
      this.#options.logs.logger.error('The run file could not be written', { error });
    }
  }
}

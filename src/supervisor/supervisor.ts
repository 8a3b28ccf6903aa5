import { SERVICE_NAMES, type ServiceName } from '../contracts/index.ts';
import type { DaemonStart, PeerUrls } from '../daemons/process-protocol.ts';
import type { Environment, LoadedConfig } from '../kit/config/config.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Random } from '../kit/security/random.ts';
import type { LogLevel } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { SandboxStatus, ServiceStatus, SupervisorEvent } from './control-protocol.ts';
import type { Secrets } from './keys-file.ts';
import { createManagedService, type ManagedService } from './managed-service.ts';
import { weakestSandbox } from './sandbox-status.ts';

export interface SupervisorOptions {
  /** Called before each requested restart, so that config changes take effect. */
  loadConfig: () => LoadedConfig;
  secrets: Secrets;
  /** The same for secrets, with the environment of the config and its `.env`. */
  reloadSecrets: (env: Environment) => Secrets;
  clock: Clock;
  random: Random;
  logLevel?: LogLevel;
  onLines: (service: ServiceName, lines: Buffer) => void;
  onEvent: (event: SupervisorEvent) => void;
  /** Called when processes or their addresses change. */
  onProcesses: () => void;
}

/** Starts the five services together, drains them in reverse order and restarts crashed ones. */
export interface Supervisor {
  /** Throws the first failure, after stopping the started services. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Kills all services. */
  kill(): void;
  restart(name: ServiceName | null): Promise<void>;
  services(): ServiceStatus[];
  /** The weakest sandbox of all services, from their processes or config. */
  sandbox(): Promise<SandboxStatus | null>;
}

export function createSupervisor(options: SupervisorOptions): Supervisor {
  let loaded = options.loadConfig();
  let { secrets } = options;
  const peers: PeerUrls = {};
  let stopping: Promise<void> | undefined;
  /** Serializes restarts, so that a service is not started twice. */
  let lastRestart: Promise<unknown> = Promise.resolve();

  const services = SERVICE_NAMES.map((name) =>
    createManagedService({
      name,
      clock: options.clock,
      random: options.random,
      describe: () => ({ start: describe(name), env: loaded.env }),
      keepsPort: () => name !== 'gateway' || loaded.config.gateway.processes === 1,
      onLines: (lines) => options.onLines(name, lines),
      onEvent: options.onEvent,
      onProcess: options.onProcesses,
      onListening(url) {
        peers[name] = url;
        options.onProcesses();
        for (const service of services) service.sendPeers({ [name]: url });
      },
    }),
  );

  function describe(name: ServiceName): DaemonStart {
    const { config, profile, projectDir, configFile, dataDir } = loaded;
    const { keys, operator } = secrets;
    const { host, port } = config[name];
    return {
      config,
      profile,
      projectDir,
      configFile,
      dataDir,
      keys,
      operator,
      peers: { ...peers },
      listen: { host, port },
      ...(options.logLevel ? { logLevel: options.logLevel } : {}),
    };
  }

  /** Drains in reverse order of SERVICE_NAMES, so the gateway is drained first. */
  async function drain(which: ManagedService[], comesBack = false): Promise<void> {
    for (const service of which.toReversed()) await service.stop(comesBack);
  }

  async function startAll(which: ManagedService[]): Promise<void> {
    const starts = which.map((service) => service.start());
    try {
      await Promise.all(starts);
    } catch (error) {
      await drain(which);
      await Promise.allSettled(starts);
      throw error;
    }
  }

  return {
    start: () => startAll(services),
    stop() {
      stopping ??= drain(services);
      return stopping;
    },
    kill() {
      for (const service of services) service.kill();
    },
    restart(name) {
      const restarted = lastRestart.then(() => restart(name));
      lastRestart = restarted.catch(() => {});
      return restarted;
    },
    services: () => services.map((service) => service.status()),
    sandbox: () =>
      weakestSandbox(
        services.map((service) => ({
          used: service.status().sandbox,
          preference: service.sandboxPreference(),
        })),
      ),
  };

  async function restart(name: ServiceName | null): Promise<void> {
    refuseWhileStopping();
    // An invalid config is reported before anything is stopped.
    const next = options.loadConfig();
    if (next.dataDir !== loaded.dataDir) {
      throw new PlatformError(
        'CONFLICT',
        `The data folder changed from ${loaded.dataDir} to ${next.dataDir}. Run \`svc down\` and \`svc up -d\`.`,
      );
    }
    const nextSecrets = options.reloadSecrets(next.env);
    if (name !== null && nextSecrets.keys.internalSecret !== secrets.keys.internalSecret) {
      throw new PlatformError(
        'CONFLICT',
        `The internal secret, which all services share, has changed. Restart all services with \`svc restart\`.`,
      );
    }
    loaded = next;
    secrets = nextSecrets;
    const which = services.filter((service) => name === null || service.name === name);
    await drain(which, true);
    refuseWhileStopping();
    await startAll(which);
  }

  function refuseWhileStopping(): void {
    if (stopping) throw new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping.');
  }
}

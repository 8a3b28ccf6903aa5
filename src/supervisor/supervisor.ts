import { type PlatformConfig, SERVICE_NAMES, type ServiceName } from '../contracts/index.ts';
import type { DaemonStart, PeerUrls } from '../daemons/process-protocol.ts';
import { requireClusterSettings } from '../kit/config/cluster.ts';
import type { Environment, LoadedConfig } from '../kit/config/config.ts';
import { requireServiceSet } from '../kit/config/service-set.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Random } from '../kit/security/random.ts';
import type { Logger, LogLevel } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { SandboxStatus, ServiceStatus, SupervisorEvent } from './control-protocol.ts';
import { endCrashedWorkflow } from './crashed-workflows.ts';
import { waitHealthy } from './health.ts';
import type { Secrets } from './keys-file.ts';
import { weakestSandbox } from './sandbox-status.ts';
import { spawnService } from './service-process.ts';
import { ServiceProcesses } from './service-processes.ts';

export interface SupervisorOptions {
  /** Loads the config at startup and before each requested restart, so that changes take effect. */
  loadConfig: () => LoadedConfig;
  /** Services that this node runs. Other nodes run the other services. */
  services: readonly ServiceName[];
  secrets: Secrets;
  /** Reads the secrets again before each requested restart. `env` includes the variables of the `.env` file. */
  reloadSecrets: (env: Environment) => Secrets;
  clock: Clock;
  random: Random;
  logLevel?: LogLevel;
  logger: Logger;
  onLines: (service: ServiceName, lines: Buffer) => void;
  onEvent: (event: SupervisorEvent) => void;
  /** Callback that is called when a process starts or exits, or when its address changes. */
  onProcesses: () => void;
}

/** Starts all services at the same time, drains them in reverse order, and restarts crashed services. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #services: readonly ServiceProcesses[];
  readonly #peers: PeerUrls = {};
  #loaded: LoadedConfig;
  #secrets: Secrets;
  #stopping: Promise<void> | undefined;
  /** Result of the last restart. Restarts run one after another, so that no service is started twice. */
  #lastRestart: Promise<unknown> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#loaded = options.loadConfig();
    this.#secrets = options.secrets;
    this.#services = options.services.map((name) => this.#manage(name));
  }

  /** Starts all services. If a service fails to start, stops all services and throws the first failure. */
  start(): Promise<void> {
    return startAll(this.#services);
  }

  stop(): Promise<void> {
    this.#stopping ??= drain(this.#services);
    return this.#stopping;
  }

  kill(): void {
    for (const service of this.#services) service.kill();
  }

  /**
   * Restarts one service, or all services of this node if `name` is null. Rejects an invalid config before any service
   * is stopped.
   */
  restart(name: ServiceName | null): Promise<void> {
    if (name !== null) requireOnNode(name, this.#options.services);
    const restarted = this.#lastRestart.then(() => this.#restart(name));
    this.#lastRestart = restarted.catch(() => {});
    return restarted;
  }

  services(): ServiceStatus[] {
    return this.#services.map((service) => service.status());
  }

  sandbox(): Promise<SandboxStatus | null> {
    return weakestSandbox(
      this.#services.map((service) => ({
        used: service.status().sandbox,
        preference: service.sandboxPreference(),
      })),
    );
  }

  #manage(name: ServiceName): ServiceProcesses {
    const { clock, random, onLines, onEvent, onProcesses } = this.#options;
    return new ServiceProcesses({
      ...{ name, clock, random, spawn: spawnService, waitHealthy, onEvent },
      describe: () => ({ start: this.#describe(name), env: this.#loaded.env }),
      count: () => processesOf(name, this.#loaded.config),
      onLines: (lines) => onLines(name, lines),
      onCrash: (crash) => {
        if (name === 'workflow') void endCrashedWorkflow(crash, this.#loaded, this.#options);
      },
      onProcess: onProcesses,
      onListening: (url) => this.#announce(name, url),
    });
  }

  #announce(name: ServiceName, url: string): void {
    this.#peers[name] = url;
    this.#options.onProcesses();
    for (const service of this.#services) service.sendPeers({ [name]: url });
  }

  #describe(name: ServiceName): DaemonStart {
    const { config, profile, projectDir, configFile, dataDir } = this.#loaded;
    const { keys, operator } = this.#secrets;
    const { host, port } = config[name];
    const { logLevel, services } = this.#options;
    return {
      ...{ config, profile, projectDir, configFile, dataDir, keys, operator },
      peers: { ...this.#peers },
      elsewhere: SERVICE_NAMES.filter((each) => !services.includes(each)),
      listen: { host, port },
      ...(logLevel ? { logLevel } : {}),
    };
  }

  async #restart(name: ServiceName | null): Promise<void> {
    this.#refuseWhileStopping();
    const next = this.#options.loadConfig();
    if (next.dataDir !== this.#loaded.dataDir) {
      throw new PlatformError(
        'CONFLICT',
        `The data folder changed from ${this.#loaded.dataDir} to ${next.dataDir}. Run \`svc down\` and \`svc up -d\`.`,
      );
    }
    requireClusterSettings(next.config, next.env);
    requireServiceSet(this.#options.services, next);
    const nextSecrets = this.#options.reloadSecrets(next.env);
    if (name !== null && nextSecrets.keys.internalSecret !== this.#secrets.keys.internalSecret) {
      throw new PlatformError(
        'CONFLICT',
        `The internal secret, which all services share, has changed. Restart all services with \`svc restart\`.`,
      );
    }
    this.#loaded = next;
    this.#secrets = nextSecrets;
    const which = this.#services.filter((service) => name === null || service.name === name);
    await drain(which, true);
    this.#refuseWhileStopping();
    await startAll(which);
  }

  #refuseWhileStopping(): void {
    if (this.#stopping) throw new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping.');
  }
}

/** Returns the number of processes of a service. Only Linux can share a port between processes. */
function processesOf(name: ServiceName, { gateway }: PlatformConfig): number {
  return name === 'gateway' && process.platform === 'linux' ? gateway.processes : 1;
}

/** Throws NOT_FOUND if another node runs the service. */
function requireOnNode(name: ServiceName, services: readonly ServiceName[]): void {
  if (services.includes(name)) return;
  throw new PlatformError(
    'NOT_FOUND',
    `This node does not run ${name}: it was started with --services ${services.join(',')}. Restart ${name} on its own node, or add it with \`svc down\` and \`svc up -d --services ${[...services, name].join(',')}\`.`,
    { details: { service: name, services } },
  );
}

/** Stops services in reverse order of SERVICE_NAMES, so that the gateway is drained first. */
async function drain(services: readonly ServiceProcesses[], willRestart = false): Promise<void> {
  for (const service of services.toReversed()) await service.stop(willRestart);
}

async function startAll(services: readonly ServiceProcesses[]): Promise<void> {
  const starts = services.map((service) => service.start());
  try {
    await Promise.all(starts);
  } catch (error) {
    await drain(services);
    await Promise.allSettled(starts);
    throw error;
  }
}

import { SERVICE_NAMES, type ServiceName } from '../../../contracts/index.ts';
import { createPeers } from '../../../daemons/peers.ts';
import type { RunningDaemon } from '../../../daemons/run-daemon.ts';
import { startByName } from '../../../daemons/start-by-name.ts';
import { requireClusterSettings } from '../../../kit/config/cluster.ts';
import { type LoadedConfig, loadConfig } from '../../../kit/config/config.ts';
import { drainDelayMsOf } from '../../../kit/config/drain-delay.ts';
import { PLATFORM_SECRETS } from '../../../kit/config/mounted-secrets.ts';
import { requireServiceSet } from '../../../kit/config/service-set.ts';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { instanceId } from '../../../kit/files/instance-id.ts';
import { systemRandom } from '../../../kit/security/random.ts';
import { otlpTarget } from '../../../kit/telemetry/tracer.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import { STOP_DEADLINES } from '../../../kit/time/stop-deadlines.ts';
import { dataFolder, ensureDataFolder } from '../../../supervisor/data-folder.ts';
import { lockSingleService } from '../../../supervisor/folder-lock.ts';
import { loadSecrets } from '../../../supervisor/keys-file.ts';
import { onStopSignals } from '../../../supervisor/stop-signals.ts';
import type { CommandContext } from '../../context.ts';
import { EXIT } from '../../exit-codes.ts';
import { ServiceLogs } from './service-logs.ts';
import { SingleService } from './single-service.ts';

export interface ServiceOptions {
  name: ServiceName;
  host?: string | undefined;
  port?: number | undefined;
  /** URL at which other nodes reach this process. */
  advertise?: string | undefined;
  /** Called once the signals of the process stop the service. */
  onConnected: () => void;
}

interface Prepared extends ServiceOptions {
  loaded: LoadedConfig;
  logs: ServiceLogs;
}

/**
 * Runs one service in this process until SIGTERM or SIGINT. Resolves with the exit code: 0 after a stop, 1 after a
 * fault. A second signal ends the process at once.
 */
export async function runService(options: ServiceOptions, context: CommandContext): Promise<number> {
  const { name } = options;
  const loaded = loadService(options, context);
  const folder = dataFolder(loaded.dataDir);
  ensureDataFolder(folder);
  const resources = await lockSingleService(name, folder, loaded);
  try {
    const logs = await openLogs(name, loaded, context);
    resources.defer(() => logs.close());
    const service = new SingleService({
      ...{ name, logger: logs.logger },
      drainDelayMs: drainDelayMsOf(loaded.config, name),
      deadlineMs: loaded.config[name].drainMs + STOP_DEADLINES.processEndMs,
      start: () => startService({ ...options, loaded, logs }, () => service.stop(EXIT.failed)),
    });
    resources.defer(onProcessEvents(service, logs));
    options.onConnected();
    process.title = `svc ${name}`;
    process.chdir(loaded.projectDir);
    service.start();
    return await service.ended;
  } finally {
    await resources.disposeAsync();
  }
}

function openLogs(name: ServiceName, loaded: LoadedConfig, context: CommandContext): Promise<ServiceLogs> {
  const { config, env, dataDir } = loaded;
  const postgresUrl = postgresUrlOf(config.store, env);
  const node = instanceId(dataDir, env, systemRandom());
  return ServiceLogs.open({ name, dataDir, postgresUrl, node, retention: config.retention }, context);
}

/** Loads the config of a node that runs only this service. Throws VALIDATION_ERROR if the service cannot work. */
function loadService({ name, host, port }: ServiceOptions, context: CommandContext): LoadedConfig {
  const { cwd, env, globals } = context;
  const ports = port === undefined ? {} : { [name]: port };
  const loaded = loadConfig({ cwd, env, configFile: globals.config, profile: globals.profile, ports });
  if (host !== undefined) loaded.config[name].host = host;
  requireClusterSettings(loaded.config, loaded.env);
  requireServiceSet([name], loaded);
  return loaded;
}

async function startService(
  { name, advertise, loaded, logs }: Prepared,
  onFatal: () => void,
): Promise<RunningDaemon> {
  const random = systemRandom();
  const { config, profile, projectDir, configFile, dataDir } = loaded;
  const { keys, operator } = loadSecrets(dataFolder(dataDir), loaded.env, random);
  const env = passedEnvironment(loaded);
  const daemon = await startByName(name, {
    ...{ config, profile, projectDir, configFile, dataDir, keys, operator },
    ...{ output: logs.output, random, env, advertise, onFatal },
    peers: createPeers(),
    elsewhere: SERVICE_NAMES.filter((each) => each !== name),
    clock: systemClock,
    otlp: otlpTarget(env),
  });
  logs.startTelemetry();
  return daemon;
}

/**
 * Makes the variables of the `.env` file variables of this process, without the secrets of the platform, which other
 * processes of the service must not inherit.
 */
function passedEnvironment({ env }: LoadedConfig): NodeJS.ProcessEnv {
  Object.assign(process.env, env);
  for (const name of [...PLATFORM_SECRETS, 'SVC_TOKEN']) delete process.env[name];
  return process.env;
}

/** Connects signals and unexpected errors of the process. Returns a function that disconnects them. */
function onProcessEvents(service: SingleService, { logger, output }: ServiceLogs): () => void {
  const fail = (error: unknown) => service.fail(error);
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
  // Keeps the process alive while no connection is open. The timers of `systemClock` do not keep a process alive.
  const alive = setInterval(() => {}, minutes(1));
  const off = onStopSignals({
    first(signal) {
      logger.info(`${signal}: draining; a second signal ends the process at once`);
      service.stop(EXIT.done);
    },
    again() {
      output.flush();
      process.exit(EXIT.interrupted);
    },
  });
  return () => {
    off();
    clearInterval(alive);
    process.off('uncaughtException', fail);
    process.off('unhandledRejection', fail);
  };
}

import { join } from 'node:path';
import type { ServiceName } from '../contracts/index.ts';
import type { LoadedConfig } from '../kit/config/config.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { version } from '../kit/files/paths.ts';
import { settleMemory } from '../kit/process/settle-memory.ts';
import type { Random } from '../kit/security/random.ts';
import { withoutEvents } from '../kit/telemetry/analytics.ts';
import { createLogger, type Diagnostic, type Logger, type LogLevel } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import { formatDuration } from '../kit/time/duration.ts';
import { acquireOwnerLock, type Owner, type OwnerLock } from '../store/sqlite/owner-lock.ts';
import { createTelemetryWriter, type TelemetryWriter } from '../store/sqlite/telemetry/writer.ts';
import { brokenPlugins } from './broken-plugins.ts';
import type { BrokenPlugin, SupervisorEvent, SupervisorStatus } from './control-protocol.ts';
import { type ControlServer, startControlServer } from './control-server.ts';
import { type DataFolder, dataFolder, ensureDataFolder } from './data-folder.ts';
import { loadSecrets, reloadSecrets } from './keys-file.ts';
import { awaitOrphans } from './leftovers.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import { identify } from './process-identity.ts';
import { removeRunFile, writeRunFile } from './run-file.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';

/** Origin of log lines: a service, or the supervisor. */
export type LogSource = ServiceName | 'supervisor';

export interface RunOptions {
  loadConfig: () => LoadedConfig;
  clock: Clock;
  random: Random;
  logLevel?: LogLevel;
  onEvent: (event: SupervisorEvent) => void;
  /** Log lines as written to the files, for display on a terminal. */
  onLines?: (source: LogSource, lines: Buffer) => void;
}

export interface RunningSupervisor {
  /** Whether this start created the keys. */
  firstStart: boolean;
  /** Resolves when all services are ready. On failure, stops the others and throws the cause. */
  ready: Promise<void>;
  /** Resolves when everything has stopped and the data folder is unlocked. */
  ended: Promise<void>;
  status(): Promise<SupervisorStatus>;
  /** Plugins that failed to load; call it when all services are ready. */
  brokenPlugins(): Promise<BrokenPlugin[]>;
  /** Drains services in reverse order. Idempotent. */
  stop(): void;
  /** Kills all services. */
  kill(): void;
}

/** Delay after startup before settling memory: services are up and the first records are written. */
const SETTLE_MS = 1000;

/** Time to wait for a stopping predecessor to release the folder. */
const LOCK_WAIT_MS = 1000;

/** Locks the data folder and runs the platform in it. Throws CONFLICT if another supervisor holds it. */
export async function runSupervisor(options: RunOptions): Promise<RunningSupervisor> {
  const { clock, random, onEvent } = options;
  const loaded = options.loadConfig();
  const folder = dataFolder(loaded.dataDir);
  ensureDataFolder(folder);
  const lock = await lockFolder(folder);
  const telemetry = createTelemetryWriter({
    dataDir: folder.root,
    retention: loaded.config.retention,
    onDropped: (count, failure) => reportDropped(logger, count, failure),
  });
  const logs = openLogs(folder, telemetry, options.onLines);
  const output = { write: (line: string) => logs.write('supervisor', Buffer.from(line)), flush: () => {} };
  const logger = createLogger({ serviceId: 'supervisor', output, clock });
  let control: ControlServer | undefined;

  async function release(): Promise<void> {
    await control?.close();
    removeRunFile(folder);
    await telemetry.close();
    logs.close();
    lock.release();
  }
  try {
    const report = (event: SupervisorEvent): void => {
      logEvent(logger, event);
      onEvent(event);
    };
    await awaitOrphans(folder, loaded.config, (reason) => report({ type: 'waiting', reason }));
    const secrets = loadSecrets(folder, loaded.env, random);
    const startedAt = clock.monotonic();
    const supervisor = createSupervisor({
      ...options,
      secrets,
      reloadSecrets: (env) => reloadSecrets(folder, env, random),
      onLines: logs.write,
      onEvent: report,
      onProcesses: () => tryWriteRun(),
    });
    const writeRun = (): void => {
      if (control) writeRunFile(folder, describeRun(control.socket, supervisor));
    };
    /** A full disk must not stop the platform. The file is then outdated until the next change. */
    const tryWriteRun = (): void => {
      try {
        writeRun();
      } catch (error) {
        logger.error('The run file could not be written', { error });
      }
    };
    const status = async (): Promise<SupervisorStatus> => {
      const sandbox = await supervisor.sandbox();
      return { ...describeStatus(loaded, supervisor, clock.monotonic() - startedAt), sandbox };
    };
    const { promise: ended, resolve: onEnd, reject: onEndFailed } = Promise.withResolvers<void>();
    let stopping: Promise<void> | undefined;
    const stop = (): Promise<void> => {
      if (!stopping) {
        stopping = supervisor.stop();
        stopping.then(release).then(onEnd, onEndFailed);
      }
      return stopping;
    };
    control = await startControlServer(folder, {
      status,
      stop,
      restart: supervisor.restart,
    });
    writeRun();
    const ready = supervisor.start().then(
      // Starts a process to detect the sandbox, so only after the services have started.
      () => {
        telemetry.start();
        void supervisor.sandbox();
        settleMemory(SETTLE_MS);
      },
      async (error: unknown) => {
        await stop();
        await ended;
        throw error;
      },
    );
    return {
      firstStart: secrets.created,
      ready,
      ended,
      status,
      brokenPlugins: () => brokenPlugins(urlOf(supervisor, 'marketplace'), secrets.keys.internalSecret),
      stop: () => void stop(),
      kill: supervisor.kill,
    };
  } catch (error) {
    await release();
    throw error;
  }
}

async function lockFolder(folder: DataFolder): Promise<OwnerLock> {
  try {
    return await acquireOwnerLock({ file: folder.ownerLock, waitMs: LOCK_WAIT_MS, label: 'supervisor' });
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === 'CONFLICT')) throw error;
    const { owner } = error.details as { owner?: Owner | null };
    throw new PlatformError(
      'CONFLICT',
      `svc is already running on ${folder.root}${owner ? ` (pid ${owner.pid})` : ''}.`,
      {
        details: {
          alreadyRunning: true,
          dataDir: folder.root,
          owner: owner ?? null,
          hint: 'Stop it with svc down, or set SVC_HOME=<folder> to use another data folder.',
        },
        cause: error,
      },
    );
  }
}

function urlOf(supervisor: Supervisor, name: ServiceName): string | null {
  return supervisor.services().find((service) => service.name === name)?.url ?? null;
}

function describeRun(socket: string, supervisor: Supervisor) {
  const children = supervisor
    .services()
    .flatMap(({ name, pid, url }) => (pid === null ? [] : [{ name, url, ...identify(pid) }]));
  return { supervisor: identify(process.pid), socket, children };
}

function describeStatus(
  loaded: LoadedConfig,
  supervisor: Supervisor,
  uptimeMs: number,
): Omit<SupervisorStatus, 'sandbox'> {
  const { profile, projectDir, dataDir, configFile } = loaded;
  return {
    pid: process.pid,
    version,
    profile,
    projectDir,
    dataDir,
    configFile,
    uptimeMs,
    services: supervisor.services(),
  };
}

interface Logs {
  write(source: LogSource, lines: Buffer): void;
  close(): void;
}

/** Splits the output of services: everything goes to `telemetry.db`, log records also to the log files. */
function openLogs(folder: DataFolder, telemetry: TelemetryWriter, alsoTo: RunOptions['onLines']): Logs {
  const files = new Map<LogSource, LogFile>();
  return {
    write(source, block) {
      telemetry.push(source, block);
      const lines = withoutEvents(block);
      if (lines.length === 0) return;
      const file = files.get(source) ?? openLogFile(join(folder.logs, `${source}.log`));
      files.set(source, file);
      file.write(lines);
      alsoTo?.(source, lines);
    },
    close() {
      for (const file of files.values()) file.close();
    },
  };
}

function reportDropped(logger: Logger, count: number, failure: string | undefined): void {
  logger.diagnostic({
    domain: 'telemetry',
    event: 'telemetry.dropped',
    level: 'warn',
    reasonCode: 'TELEMETRY_DROPPED',
    message: `${count} records were not written to telemetry.db (${failure ?? 'rate limit exceeded'}); the log files contain them`,
    outcome: 'degraded',
    evidence: { count, ...(failure ? { failure } : {}) },
  });
}

function logEvent(logger: Logger, event: SupervisorEvent): void {
  const diagnose = (diagnostic: Omit<Diagnostic, 'domain' | 'event'>): void =>
    logger.diagnostic({ domain: 'supervisor', event: `supervisor.${event.type}`, ...diagnostic });
  if (event.type === 'waiting') logger.info(`Waiting: ${event.reason}`);
  else if (event.type === 'ready') {
    const { service, url, pid, tookMs } = event;
    logger.info(`${service} is ready after ${formatDuration(tookMs)}`, {
      meta: { service, url, pid, tookMs },
    });
  } else if (event.type === 'stopped') {
    const { service, reason, killed } = event;
    logger.info(`${service} ${killed ? 'was killed' : 'stopped'}`, {
      meta: { service, reason },
    });
  } else if (event.type === 'crashed') {
    const { service, reason, retryInMs } = event;
    diagnose({
      level: 'error',
      reasonCode: 'SERVICE_CRASHED',
      message: `${service} crashed (${reason}); restarting in ${retryInMs}ms`,
      outcome: 'degraded',
      evidence: { service, reason, retryInMs },
    });
  } else {
    const { service, reason, crashes, retryInMs, lastLines } = event;
    diagnose({
      level: 'fatal',
      reasonCode: 'CRASH_LOOP',
      message: `${service} crashed ${crashes} times in a row (${reason}); restarting in ${formatDuration(retryInMs)}. To restart it now: \`svc restart ${service}\``,
      outcome: 'failed',
      evidence: { service, reason, retryInMs, lastLines },
    });
  }
}

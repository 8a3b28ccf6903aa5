import type { ServiceName } from '../contracts/index.ts';
import type { DaemonStart, PeerUrls } from '../daemons/process-protocol.ts';
import type { Environment } from '../kit/config/config.ts';
import { messageOf, PlatformError } from '../kit/errors/errors.ts';
import { createCrashPolicy } from '../kit/process/crash-policy.ts';
import type { Random } from '../kit/security/random.ts';
import type { Clock } from '../kit/time/clock.ts';
import { formatDuration, seconds } from '../kit/time/duration.ts';
import { STOP_DEADLINES } from '../kit/time/stop-deadlines.ts';
import type { SandboxPreference, SandboxStatus } from '../plugins/index.ts';
import type { LastExit, ServiceState, ServiceStatus, SupervisorEvent } from './control-protocol.ts';
import { waitHealthy } from './health.ts';
import { createLogTail } from './log-tail.ts';
import { findPortOwner } from './port-owner.ts';
import {
  type ExitInfo,
  exitText,
  isFault,
  type Listening,
  type ServiceProcess,
  spawnService,
} from './service-process.ts';

const READY_DEADLINE_MS = seconds(30);

export interface ManagedServiceOptions {
  name: ServiceName;
  clock: Clock;
  random: Random;
  /** Start message and environment of the next process; called at each start. */
  describe: () => { start: DaemonStart; env: Environment };
  /** Whether a single process owns the port and can pass it to its successor. */
  keepsPort: () => boolean;
  onLines: (lines: Buffer) => void;
  onEvent: (event: SupervisorEvent) => void;
  onListening: (url: string) => void;
  /** Called when a process starts or ends. */
  onProcess: () => void;
}

/** A service and its successive processes. */
export interface ManagedService {
  readonly name: ServiceName;
  /** Resolves when ready. Throws without retrying, so that the first start reports the cause. */
  start(): Promise<void>;
  /** Drains, and kills after a deadline. `comesBack`: new connections wait for the next process; else they are refused. */
  stop(comesBack?: boolean): Promise<void>;
  kill(): void;
  sendPeers(urls: PeerUrls): void;
  status(): ServiceStatus;
  /** Sandbox setting of the running process; null if none is running. */
  sandboxPreference(): SandboxPreference | null;
}

export function createManagedService(options: ManagedServiceOptions): ManagedService {
  const { name, clock, random, describe, onEvent } = options;
  const crashes = createCrashPolicy({ clock, random });
  const tail = createLogTail();
  let state: ServiceState = 'stopped';
  let current: ServiceProcess | null = null;
  let drainMs = 0;
  let bound: Listening | null = null;
  /** Monotonic ms. */
  let readyAt: number | null = null;
  let restarts = 0;
  let lastExit: LastExit | null = null;
  /** A process crashed by its own fault since the last one was ready. */
  let hadFault = false;
  let nextStartAt: number | null = null;
  let cancelRestart = (): void => {};
  /** The process was killed: it did not drain in time, or a kill was requested. */
  let isForced = false;
  let sandbox: SandboxStatus | null = null;
  let sandboxPreference: SandboxPreference | null = null;
  /** The configured address of `bound`. */
  let boundTo = '';

  /** Closes the retained listener, so that connections are refused. */
  function releasePort(): void {
    bound?.listener?.close();
    if (bound) bound = { ...bound, listener: undefined };
  }

  /** Starts a process and waits until it is ready. If this throws, the process has exited. */
  async function launch(): Promise<void> {
    state = 'starting';
    nextStartAt = null;
    const { start, env } = describe();
    // A restarted service keeps its port, even if it was chosen by the system.
    const listen = start.listen.port === 0 && bound ? { ...start.listen, port: bound.port } : start.listen;
    if (!options.keepsPort() || boundTo !== addressOf(listen)) releasePort();
    const startedAt = clock.monotonic();
    tail.clear();
    sandbox = null;
    sandboxPreference = start.config.execution.worker.sandbox;
    ({ drainMs } = start.config[name]);
    const child = spawnService({
      name,
      start: { ...start, listen, hadFault },
      listener: bound?.listener,
      env,
      now: clock.now,
      onLines(lines) {
        tail.push(lines);
        options.onLines(lines);
      },
      onSandbox(reported) {
        if (current === child) sandbox = reported;
      },
    });
    current = child;
    options.onProcess();
    const deadline = AbortSignal.timeout(READY_DEADLINE_MS);
    void child.exited.then((exit) => onExit(child, exit));
    try {
      await untilReady(child, listen.host, deadline);
    } catch (error) {
      // A process that hangs during startup counts as crashed by its own fault.
      hadFault ||= deadline.aborted;
      child.kill();
      await child.exited;
      throw withDetails(error, name, tail.lines());
    }
    if (isStopping()) {
      // Stopped at the moment it became ready, so its exit is not a crash.
      await child.exited;
      throw new PlatformError('SERVICE_UNAVAILABLE', `${name} was stopped while starting.`);
    }
    readyAt = clock.monotonic();
    hadFault = false;
    state = 'ready';
    onEvent({ type: 'ready', service: name, url: bound!.url, pid: child.pid, tookMs: readyAt - startedAt });
  }

  function killProcess(): void {
    isForced = true;
    current?.kill();
  }

  // A function, because TypeScript does not know that `stop` changes the state while `launch` waits.
  const isStopping = (): boolean => state === 'stopping' || state === 'stopped';

  async function untilReady(child: ServiceProcess, host: string, deadline: AbortSignal): Promise<void> {
    const late = new PlatformError(
      'UPSTREAM_TIMEOUT',
      `${name} was not ready within ${formatDuration(READY_DEADLINE_MS)}.`,
    );
    const failed = new Promise<never>((_, reject) => {
      deadline.addEventListener('abort', () => reject(late), { once: true });
      void child.exited.then((exit) =>
        reject(
          new PlatformError('SERVICE_UNAVAILABLE', `${name} exited before it was ready (${exitText(exit)}).`),
        ),
      );
    });
    failed.catch(() => {});
    const listening = await Promise.race([child.listening, failed]);
    releasePort();
    bound = listening;
    boundTo = addressOf({ host, port: listening.port });
    options.onListening(bound.url);
    await Promise.race([waitHealthy(name, bound.url, deadline), failed]);
  }

  function onExit(child: ServiceProcess, exit: ExitInfo): void {
    if (current !== child) return;
    const { code, signal } = exit;
    const description = exitText(exit);
    hadFault ||= isFault(exit);
    const before = state;
    const uptimeMs = readyAt === null ? 0 : clock.monotonic() - readyAt;
    current = null;
    readyAt = null;
    const lastError = before === 'stopping' ? undefined : tail.lastErrorMessage();
    const reason = lastError ? `${description}: ${lastError}` : description;
    lastExit = { at: clock.now(), code, signal, reason };
    options.onProcess();
    if (before === 'stopping') {
      state = 'stopped';
      onEvent({ type: 'stopped', service: name, reason: description, killed: isForced });
    } else if (before === 'ready') scheduleRestart(reason, uptimeMs);
    // A failed start is handled by launch().
  }

  function scheduleRestart(reason: string, uptimeMs: number): void {
    const verdict = crashes.crashed(uptimeMs);
    const retryInMs = verdict.delayMs;
    restartIn(retryInMs);
    if (verdict.loop) {
      state = 'failed';
      // Refuses connections immediately instead of letting them wait for minutes.
      releasePort();
      const { crashes } = verdict;
      onEvent({ type: 'crash-loop', service: name, reason, crashes, retryInMs, lastLines: tail.lines() });
    } else {
      state = 'restarting';
      onEvent({ type: 'crashed', service: name, reason, retryInMs });
    }
  }

  function restartIn(delayMs: number): void {
    nextStartAt = clock.now() + delayMs;
    cancelRestart = clock.after(delayMs, () => {
      restarts++;
      launch().catch((error: unknown) => {
        if (state === 'starting') scheduleRestart(messageOf(error).replace(/\.$/, ''), 0);
      });
    });
  }

  return {
    name,
    async start() {
      crashes.reset();
      try {
        await launch();
      } catch (error) {
        if (state === 'starting') state = 'failed';
        releasePort();
        throw error;
      }
    },
    async stop(comesBack = false) {
      cancelRestart();
      nextStartAt = null;
      if (!comesBack) releasePort();
      const child = current;
      if (!child) {
        // A failed service stays failed in the status.
        if (state !== 'failed') state = 'stopped';
        return;
      }
      state = 'stopping';
      isForced = false;
      child.stop();
      const timer = setTimeout(killProcess, drainMs + STOP_DEADLINES.forceMs);
      await child.exited;
      clearTimeout(timer);
    },
    kill: killProcess,
    sendPeers: (urls) => current?.sendPeers(urls),
    status: () => ({
      name,
      state,
      pid: current?.pid ?? null,
      port: current ? (bound?.port ?? null) : null,
      url: current ? (bound?.url ?? null) : null,
      uptimeMs: readyAt === null ? null : clock.monotonic() - readyAt,
      restarts,
      nextStartAt,
      lastExit,
      sandbox: current && sandbox,
    }),
    sandboxPreference: () => current && sandboxPreference,
  };
}

const addressOf = ({ host, port }: DaemonStart['listen']): string => `${host} ${port}`;

/** Adds the owner of a port in use, or the last log lines. */
function withDetails(thrown: unknown, name: ServiceName, lastLines: string[]): PlatformError {
  const error =
    thrown instanceof PlatformError
      ? thrown
      : new PlatformError('INTERNAL_ERROR', messageOf(thrown), { cause: thrown });
  const { port } = error.details as { port?: number };
  if (error.code === 'CONFLICT' && typeof port === 'number') return portTaken(name, port, error);
  if (error.code !== 'SERVICE_UNAVAILABLE' && error.code !== 'UPSTREAM_TIMEOUT') return error;
  return new PlatformError(error.code, error.message, {
    details: { ...error.details, service: name, lastLines },
    cause: error.cause,
  });
}

function portTaken(name: ServiceName, port: number, cause: PlatformError): PlatformError {
  const owner = findPortOwner(port);
  const by = owner ? `by pid ${owner.pid} (${owner.command.slice(0, 120)})` : 'by another process';
  return new PlatformError('CONFLICT', `Port ${port} of ${name} is in use ${by}.`, {
    details: {
      ...cause.details,
      service: name,
      owner,
      hint: `Stop that process, or choose another port, for example svc up --port ${name}=0 for any free one.`,
    },
    cause,
  });
}

import type { ServiceName } from '../../contracts/index.ts';
import type { DaemonStart, PeerUrls } from '../../daemons/process-protocol.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Environment } from '../../kit/config.ts';
import { createCrashPolicy } from '../../kit/crash-policy.ts';
import { formatDuration, seconds } from '../../kit/duration.ts';
import { messageOf, PlatformError } from '../../kit/errors.ts';
import type { Random } from '../../kit/random.ts';
import { STOP_DEADLINES } from '../../kit/stop-deadlines.ts';
import type { SandboxPreference, SandboxStatus } from '../../plugins/index.ts';
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
  /** What the next process is told; asked at each start. */
  describe: () => { start: DaemonStart; env: Environment };
  /** Whether one process alone has the port, and can hand it to the next. */
  keepsPort: () => boolean;
  onLines: (lines: Buffer) => void;
  onEvent: (event: SupervisorEvent) => void;
  onListening: (url: string) => void;
  /** The set of children changed. */
  onProcess: () => void;
}

/** One daemon and the processes that are it, one after another. */
export interface ManagedService {
  readonly name: ServiceName;
  /** Resolves when ready. Throws why it is not: no second try, the first start tells the truth. */
  start(): Promise<void>;
  /**
   * Drains, and ends by force after a deadline. `comesBack`: connections made from now on wait for the next process;
   * else they are refused.
   */
  stop(comesBack?: boolean): Promise<void>;
  kill(): void;
  sendPeers(urls: PeerUrls): void;
  status(): ServiceStatus;
  /** Of the config that its process was started with; null while it has none. */
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
  /** On the monotonic clock. */
  let readyAt: number | null = null;
  let restarts = 0;
  let lastExit: LastExit | null = null;
  /** A process died of a fault of its own since one was ready. */
  let hadFault = false;
  let nextStartAt: number | null = null;
  let cancelRestart = (): void => {};
  /** Whether the process was not left to drain: it took too long, or nobody wanted to wait. */
  let isForced = false;
  let sandbox: SandboxStatus | null = null;
  let sandboxPreference: SandboxPreference | null = null;
  /** The address that `bound` is at. */
  let boundTo = '';

  /** From now on connections are refused, unless a process takes them. */
  function givePortUp(): void {
    bound?.listener?.close();
    if (bound) bound = { ...bound, listener: undefined };
  }

  /** Starts a process and waits until it is ready; a failed one is gone when this throws. */
  async function launch(): Promise<void> {
    state = 'starting';
    nextStartAt = null;
    const { start, env } = describe();
    // A service that comes back keeps its port, even one that was any free port.
    const listen = start.listen.port === 0 && bound ? { ...start.listen, port: bound.port } : start.listen;
    if (!options.keepsPort() || boundTo !== addressOf(listen)) givePortUp();
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
    void child.exited.then((exit) => ended(child, exit));
    try {
      await untilReady(child, listen.host, deadline);
    } catch (error) {
      // One that hangs as it starts is ended by us, for its own fault.
      hadFault ||= deadline.aborted;
      child.kill();
      await child.exited;
      throw explain(error, name, tail.lines());
    }
    if (isStopping()) {
      // Asked to stop in the moment it became ready: its end is no crash.
      await child.exited;
      throw new PlatformError('SERVICE_UNAVAILABLE', `${name} was stopped while it started.`);
    }
    readyAt = clock.monotonic();
    hadFault = false;
    state = 'ready';
    onEvent({ type: 'ready', service: name, url: bound!.url, pid: child.pid, tookMs: readyAt - startedAt });
  }

  function force(): void {
    isForced = true;
    current?.kill();
  }

  // A function, because the compiler does not see that `stop` changes the state while `launch` waits.
  const isStopping = (): boolean => state === 'stopping' || state === 'stopped';

  async function untilReady(child: ServiceProcess, host: string, deadline: AbortSignal): Promise<void> {
    const late = new PlatformError(
      'UPSTREAM_TIMEOUT',
      `${name} was not ready within ${formatDuration(READY_DEADLINE_MS)}.`,
    );
    const givenUp = new Promise<never>((_, reject) => {
      deadline.addEventListener('abort', () => reject(late), { once: true });
      void child.exited.then((exit) =>
        reject(
          new PlatformError('SERVICE_UNAVAILABLE', `${name} ended before it was ready (${exitText(exit)}).`),
        ),
      );
    });
    givenUp.catch(() => {});
    const listening = await Promise.race([child.listening, givenUp]);
    givePortUp();
    bound = listening;
    boundTo = addressOf({ host, port: listening.port });
    options.onListening(bound.url);
    await Promise.race([waitHealthy(name, bound.url, deadline), givenUp]);
  }

  function ended(child: ServiceProcess, exit: ExitInfo): void {
    if (current !== child) return;
    const { code, signal } = exit;
    const how = exitText(exit);
    hadFault ||= isFault(exit);
    const before = state;
    const uptimeMs = readyAt === null ? 0 : clock.monotonic() - readyAt;
    current = null;
    readyAt = null;
    const words = before === 'stopping' ? undefined : tail.lastComplaint();
    const reason = words ? `${how}: ${words}` : how;
    lastExit = { at: clock.now(), code, signal, reason };
    options.onProcess();
    if (before === 'stopping') {
      state = 'stopped';
      onEvent({ type: 'stopped', service: name, reason: how, killed: isForced });
    } else if (before === 'ready') comeBack(reason, uptimeMs);
    // Otherwise launch() sees it and tells its caller.
  }

  function comeBack(reason: string, uptimeMs: number): void {
    const verdict = crashes.crashed(uptimeMs);
    const retryInMs = verdict.delayMs;
    restartIn(retryInMs);
    if (verdict.loop) {
      state = 'failed';
      // Callers are refused at once instead of waiting for minutes.
      givePortUp();
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
        if (state === 'starting') comeBack(messageOf(error).replace(/\.$/, ''), 0);
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
        givePortUp();
        throw error;
      }
    },
    async stop(comesBack = false) {
      cancelRestart();
      nextStartAt = null;
      if (!comesBack) givePortUp();
      const child = current;
      if (!child) {
        // One that failed stays so in the status: stopping what is not there mends nothing.
        if (state !== 'failed') state = 'stopped';
        return;
      }
      state = 'stopping';
      isForced = false;
      child.stop();
      const timer = setTimeout(force, drainMs + STOP_DEADLINES.forceMs);
      await child.exited;
      clearTimeout(timer);
    },
    kill: force,
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

/** Adds what the operator needs: who has the port, or what the daemon said last. */
function explain(thrown: unknown, name: ServiceName, lastLines: string[]): PlatformError {
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
  return new PlatformError('CONFLICT', `Port ${port}, which ${name} needs, is taken ${by}.`, {
    details: {
      ...cause.details,
      service: name,
      owner,
      hint: `Stop that process, or choose another port: svc up --port ${name}=0 takes any free one.`,
    },
    cause,
  });
}

import type { ServiceName } from '../contracts/index.ts';
import type { DaemonStart, PeerUrls } from '../daemons/process-protocol.ts';
import { drainDelayMsOf } from '../kit/config/drain-delay.ts';
import { messageOf, PlatformError } from '../kit/errors/errors.ts';
import { createCrashPolicy } from '../kit/process/crash-policy.ts';
import { formatDuration, seconds } from '../kit/time/duration.ts';
import { STOP_DEADLINES } from '../kit/time/stop-deadlines.ts';
import type { SandboxPreference } from '../plugins/index.ts';
import type { LastExit, ServiceState, ServiceStatus } from './control-protocol.ts';
import { createLogTail } from './log-tail.ts';
import type { ManagedServiceOptions } from './managed-service-options.ts';
import { type ExitInfo, exitText, isFault, type Listening, type ServiceProcess } from './service-process.ts';
import { startFailure } from './start-failure.ts';

const READY_DEADLINE_MS = seconds(30);

interface Running {
  readonly child: ServiceProcess;
  /** Host on which the process is configured to listen. */
  readonly host: string;
  readonly drainDelayMs: number;
  readonly drainMs: number;
  readonly sandboxPreference: SandboxPreference;
  /** Monotonic time in ms at which the process became ready, or null if the process is not ready yet. */
  readyAt: number | null;
}

/** Address on which the service listens, and the listening socket, which stays open for the next process. */
interface Bound extends Listening {
  readonly configured: string;
}

/** Runs one process of a service, and restarts it with a backoff after a crash. */
export class ManagedService {
  readonly name: ServiceName;
  readonly #options: ManagedServiceOptions;
  readonly #crashes: ReturnType<typeof createCrashPolicy>;
  readonly #tail = createLogTail();
  #state: ServiceState = 'stopped';
  #running: Running | null = null;
  #bound: Bound | null = null;
  #restarts = 0;
  #lastExit: LastExit | null = null;
  /** Whether a process crashed by itself and no process has become ready since the crash. */
  #hadFault = false;
  #wasKilled = false;
  #nextStartAt: number | null = null;
  #cancelRestart = (): void => {};

  constructor(options: ManagedServiceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#crashes = createCrashPolicy(options);
  }

  /**
   * Resolves when the service is ready. A failed first start is not retried, so that the caller can report the cause.
   */
  async start(): Promise<void> {
    this.#crashes.reset();
    try {
      await this.#launch();
    } catch (error) {
      if (this.#state === 'starting') this.#state = 'failed';
      this.#releasePort();
      throw error;
    }
  }

  /**
   * Drains the process and kills it after a deadline. With `willRestart`, new connections wait for the next process.
   * Otherwise, new connections are refused after a delay for load balancers.
   */
  async stop(willRestart = false): Promise<void> {
    this.#cancelRestart();
    this.#nextStartAt = null;
    if (!willRestart) this.#releasePort();
    if (!this.#running) {
      // A failed service keeps the state `failed`, so that the status still shows the failure.
      if (this.#state !== 'failed') this.#state = 'stopped';
      return;
    }
    const { child, drainMs, drainDelayMs, readyAt } = this.#running;
    this.#state = 'stopping';
    this.#wasKilled = false;
    const isBalanced = !willRestart && readyAt !== null && drainDelayMs > 0;
    if (isBalanced) await this.#leaveBalancers(child, drainDelayMs);
    child.stop();
    const cancelKill = this.#options.clock.after(drainMs + STOP_DEADLINES.forceMs, () => this.kill());
    await child.exited;
    cancelKill();
  }

  async #leaveBalancers(child: ServiceProcess, delayMs: number): Promise<void> {
    child.becomeUnready();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(delayMs, resolve);
    await Promise.race([promise, child.exited]);
    cancel();
  }

  kill(): void {
    this.#wasKilled = true;
    this.#running?.child.kill();
  }

  sendPeers(urls: PeerUrls): void {
    this.#running?.child.sendPeers(urls);
  }

  status(): ServiceStatus {
    const readyAt = this.#running?.readyAt ?? null;
    return {
      name: this.name,
      state: this.#state,
      pid: this.#running?.child.pid ?? null,
      port: this.#running ? (this.#bound?.port ?? null) : null,
      url: this.#running ? (this.#bound?.url ?? null) : null,
      uptimeMs: readyAt === null ? null : this.#options.clock.monotonic() - readyAt,
      restarts: this.#restarts,
      nextStartAt: this.#nextStartAt,
      lastExit: this.#lastExit,
      sandbox: this.#running?.child.sandbox() ?? null,
    };
  }

  /** Returns the sandbox setting of the running process, or null if no process is running. */
  sandboxPreference(): SandboxPreference | null {
    return this.#running?.sandboxPreference ?? null;
  }

  /** Starts a process and waits until the process is ready. If this method throws, the process has already exited. */
  async #launch(): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    this.#state = 'starting';
    this.#nextStartAt = null;
    this.#tail.clear();
    const running = this.#spawn();
    const { child } = running;
    try {
      await this.#untilReady(running);
    } catch (error) {
      child.kill();
      await child.exited;
      throw startFailure(error, this.name, this.#tail.lines());
    }
    if (this.#isStopping()) {
      // `stop` was called while the process started, so the exit of the process is not a crash.
      await child.exited;
      throw new PlatformError('SERVICE_UNAVAILABLE', `${this.name} was stopped while starting.`);
    }
    running.readyAt = clock.monotonic();
    this.#hadFault = false;
    this.#state = 'ready';
    const tookMs = running.readyAt - startedAt;
    this.#options.onEvent({
      ...{ type: 'ready', ...this.#subject(), url: this.#bound!.url, pid: child.pid, tookMs },
    });
  }

  #spawn(): Running {
    const { start, env } = this.#options.describe();
    const bound = this.#bound;
    // A restarted service keeps its port, even if the system chose the port.
    const listen = start.listen.port === 0 && bound ? { ...start.listen, port: bound.port } : start.listen;
    if (!this.#options.keepsPort() || bound?.configured !== addressOf(listen)) this.#releasePort();
    const child = this.#options.spawn({
      name: this.name,
      start: { ...start, listen, hadFault: this.#hadFault },
      listener: this.#bound?.listener,
      env,
      now: this.#options.clock.now,
      onLines: (lines) => {
        this.#tail.push(lines);
        this.#options.onLines(lines);
      },
    });
    const { config } = start;
    const running: Running = {
      child,
      host: listen.host,
      drainDelayMs: drainDelayMsOf(config, this.name),
      drainMs: config[this.name].drainMs,
      sandboxPreference: config.execution.worker.sandbox,
      readyAt: null,
    };
    this.#running = running;
    this.#options.onProcess();
    void child.exited.then((exit) => this.#onExit(running, exit));
    return running;
  }

  async #untilReady({ child, host }: Running): Promise<void> {
    const { clock, waitHealthy, onListening } = this.#options;
    const deadline = new AbortController();
    const cancelDeadline = clock.after(READY_DEADLINE_MS, () => deadline.abort());
    const failed = this.#startFailed(child, deadline.signal);
    try {
      const listening = await Promise.race([child.listening, failed]);
      this.#releasePort();
      this.#bound = { ...listening, configured: addressOf({ host, port: listening.port }) };
      onListening(listening.url);
      await Promise.race([waitHealthy(this.name, listening.ownUrl, deadline.signal), failed]);
    } finally {
      cancelDeadline();
      // A process that is not ready before the deadline counts as crashed.
      this.#hadFault ||= deadline.signal.aborted;
    }
  }

  /** Rejects when the process exits or the deadline passes. */
  #startFailed(child: ServiceProcess, deadline: AbortSignal): Promise<never> {
    const limit = formatDuration(READY_DEADLINE_MS);
    const failed = new Promise<never>((_, reject) => {
      const fail = (code: 'UPSTREAM_TIMEOUT' | 'SERVICE_UNAVAILABLE', message: string): void =>
        reject(new PlatformError(code, `${this.name} ${message}.`));
      deadline.addEventListener('abort', () => fail('UPSTREAM_TIMEOUT', `was not ready within ${limit}`));
      void child.exited.then((exit) =>
        fail('SERVICE_UNAVAILABLE', `exited before it was ready (${exitText(exit)})`),
      );
    });
    failed.catch(() => {});
    return failed;
  }

  #onExit(running: Running, exit: ExitInfo): void {
    if (this.#running !== running) return;
    const { clock, onProcess, onCrash, onEvent } = this.#options;
    const { code, signal } = exit;
    const description = exitText(exit);
    const before = this.#state;
    const uptimeMs = running.readyAt === null ? 0 : clock.monotonic() - running.readyAt;
    const lastError = before === 'stopping' ? undefined : this.#tail.lastErrorMessage();
    const reason = lastError ? `${description}: ${lastError}` : description;
    this.#hadFault ||= isFault(exit);
    if (before !== 'stopping') onCrash?.({ pid: running.child.pid, hadFault: this.#hadFault });
    this.#running = null;
    this.#lastExit = { at: clock.now(), code, signal, reason };
    onProcess();
    if (before === 'stopping') {
      this.#state = 'stopped';
      onEvent({ type: 'stopped', ...this.#subject(), reason: description, killed: this.#wasKilled });
    } else if (before === 'ready') this.#scheduleRestart(reason, uptimeMs);
    // `#launch` handles the exit of a process that is not ready yet.
  }

  #scheduleRestart(reason: string, uptimeMs: number): void {
    const verdict = this.#crashes.crashed(uptimeMs);
    const retryInMs = verdict.delayMs;
    this.#restartIn(retryInMs);
    if (verdict.loop) {
      this.#state = 'failed';
      // New connections to an open port would wait for the next start, which can be minutes away.
      this.#releasePort();
      this.#options.onEvent({
        ...{ type: 'crash-loop', ...this.#subject(), reason, retryInMs },
        ...{ crashes: verdict.crashes, lastLines: this.#tail.lines() },
      });
    } else {
      this.#state = 'restarting';
      this.#options.onEvent({ type: 'crashed', ...this.#subject(), reason, retryInMs });
    }
  }

  #restartIn(delayMs: number): void {
    const { clock } = this.#options;
    this.#nextStartAt = clock.now() + delayMs;
    this.#cancelRestart = clock.after(delayMs, () => {
      this.#restarts++;
      this.#launch().catch((error: unknown) => {
        if (this.#state === 'starting') this.#scheduleRestart(messageOf(error).replace(/\.$/, ''), 0);
      });
    });
  }

  #subject(): { service: ServiceName; process?: number } {
    const { name, number } = this.#options;
    return number === undefined ? { service: name } : { service: name, process: number };
  }

  /**
   * Returns whether the service is stopping or stopped. Without this method, TypeScript would assume that `#state`
   * cannot change while `#launch` waits.
   */
  #isStopping(): boolean {
    return this.#state === 'stopping' || this.#state === 'stopped';
  }

  /** Closes the listening socket that is kept for the next process, so that new connections are refused. */
  #releasePort(): void {
    this.#bound?.listener?.close();
    if (this.#bound) this.#bound = { ...this.#bound, listener: undefined };
  }
}

const addressOf = ({ host, port }: DaemonStart['listen']): string => `${host} ${port}`;

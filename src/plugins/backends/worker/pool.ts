import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { RunOptions } from '../../execution.ts';
import type { Launch } from '../../sandbox/index.ts';
import { type Call, cancelled, createCall, unavailable } from './call.ts';
import { asSandboxError, lostProcess, type ProcessExit } from './exit-reason.ts';
import {
  type RunnerProcess,
  type RunnerProcessEvents,
  START_MS,
  type startRunnerProcess,
} from './runner-process.ts';

/** Deaths at load, in a row, that are borne before new starts are put off. */
const TOLERATED_DEATHS = 3;
const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;
const LONGEST_RETRY_SECONDS = 60;

export interface PoolDeps {
  pluginId: string;
  maxProcesses: number;
  /** A process serves the tenant of its first call and no other. */
  separateTenants: boolean;
  /** Calls one process runs at a time. */
  concurrency: number;
  idleMs: number;
  maxQueue: number;
  maxQueueBytes: number;
  clock: Clock;
  /** Works out the sandbox; called when processes are needed and none is there, so that changed files count. */
  prepare(): Promise<Launch>;
  start(launch: Launch, events: RunnerProcessEvents): ReturnType<typeof startRunnerProcess>;
  /** No process is left and nothing waits. */
  onEmpty(): void;
}

export interface PoolStats {
  pluginId: string;
  processes: number;
  pids: number[];
  running: number;
  /** How many it can run at a time, once all its processes are there. */
  places: number;
  queued: number;
}

export interface Pool {
  run(request: ExecutionRequest, options: RunOptions): Promise<CommandResult>;
  stats(): PoolStats;
  /** Takes no more calls; what runs and what waits finishes, then its processes go. */
  retire(): void;
  /** Fails what waits, ends every process and settles once all are gone. */
  close(): Promise<void>;
}

interface Kept {
  stopIdle: () => void;
  /** Whom it serves; null: whoever comes first, or anybody. */
  tenantId: string | null;
}

/** The processes of one plugin version under one set of permissions, and the calls that wait for them. */
export function createPool(deps: PoolDeps): Pool {
  const { pluginId, clock, concurrency, maxProcesses } = deps;
  const processes = new Map<RunnerProcess, Kept>();
  let queue: Call[] = [];
  let queuedBytes = 0;
  let launch: Promise<Launch> | undefined;
  let preparing = 0;
  let averageMs = 100;
  let deathsAtLoad = 0;
  let nextStartAt = 0;
  let lastDeath: PlatformError | undefined;
  let closing: (() => void) | undefined;
  let isRetired = false;

  async function run(request: ExecutionRequest, options: RunOptions): Promise<CommandResult> {
    if (closing) throw unavailable('The platform is stopping.', 5);
    if (options.signal?.aborted) throw cancelled(request);
    refuseDuringBackoff();
    const call = createCall(request, options);
    const process = freeProcess(call);
    if (process) assign(process, call);
    else enqueue(call);
    return call.promise;
  }

  const hasRoom = ({ isReady, isEnding, load }: RunnerProcess): boolean =>
    isReady && !isEnding && load < concurrency;

  function freeProcess({ request }: Call): RunnerProcess | undefined {
    let best: RunnerProcess | undefined;
    for (const [process, { tenantId }] of processes) {
      if (!hasRoom(process)) continue;
      if (tenantId !== null && tenantId !== request.tenantId) continue;
      // The last one started wins, so that those that are not needed become idle and go.
      if (!best || process.load <= best.load) best = process;
    }
    return best;
  }

  function assign(process: RunnerProcess, call: Call): void {
    const startedAt = clock.now();
    const kept = processes.get(process)!;
    kept.stopIdle();
    if (deps.separateTenants) kept.tenantId = call.request.tenantId;
    call.promise.then(
      () => {
        averageMs += (clock.now() - startedAt - averageMs) * 0.1;
      },
      () => {},
    );
    process.assign(call);
  }

  function enqueue(call: Call): void {
    const bytes = Buffer.byteLength(call.frame);
    if (queue.length >= deps.maxQueue || queuedBytes + bytes > deps.maxQueueBytes) {
      throw unavailable(
        `${queue.length} calls of plugin ${pluginId} are waiting already.`,
        retryAfterSeconds(),
      );
    }
    queue.push(call);
    queuedBytes += bytes;
    const leave = (error: PlatformError) => {
      if (!take(call)) return;
      call.reject(error);
    };
    // The handler's time begins when it runs; until then it waits as long again, or for a process to start.
    const waitMs = Math.max(call.timeoutMs, START_MS);
    const stopTimer = clock.after(waitMs, () => {
      const message = `No process of plugin ${pluginId} became free within ${waitMs} ms; all are busy.`;
      leave(unavailable(message, retryAfterSeconds()));
    });
    call.promise.then(stopTimer, stopTimer);
    call.cancelWith(() => leave(cancelled(call.request)));
    startIfNeeded();
  }

  /** Takes a call out of the queue; false when it is not in it any more. */
  function take(call: Call): boolean {
    const at = queue.indexOf(call);
    if (at === -1) return false;
    queue.splice(at, 1);
    queuedBytes -= Buffer.byteLength(call.frame);
    return true;
  }

  function retryAfterSeconds(): number {
    const places = maxProcesses * concurrency;
    const seconds = Math.ceil((averageMs * (queue.length + 1)) / places / 1000);
    return Math.min(LONGEST_RETRY_SECONDS, Math.max(1, seconds));
  }

  function dispatch(): void {
    for (const call of [...queue]) {
      // Where many wait, a process that became free mostly takes the first of them, and no other is.
      if (![...processes.keys()].some(hasRoom)) break;
      const process = freeProcess(call);
      // One that nobody can take now holds back its own tenant alone.
      if (!process) continue;
      take(call);
      assign(process, call);
    }
    startIfNeeded();
  }

  function startIfNeeded(): void {
    if (closing) return;
    const all = [...processes.keys()];
    const starting = preparing + all.filter(({ isReady, isEnding }) => !isReady && !isEnding).length;
    const missing = Math.ceil(queue.length / concurrency) - starting;
    const places = maxProcesses - processes.size - preparing;
    for (let count = Math.min(missing, places); count > 0; count--) void startOne();
    if (deps.separateTenants)
      makeRoom(missing - Math.max(0, places) - all.filter(({ isEnding }) => isEnding).length);
  }

  /** Processes that wait for another tenant's next call make way for those of tenants who wait. */
  function makeRoom(count: number): void {
    const idle = [...processes.keys()].filter(
      ({ isReady, isEnding, load }) => isReady && !isEnding && load === 0,
    );
    for (const process of idle.slice(0, Math.max(0, count))) process.end({ kind: 'idle' });
  }

  async function startOne(): Promise<void> {
    preparing++;
    try {
      launch ??= deps.prepare();
      const ready = await launch;
      if (closing) return;
      const process = deps.start(ready, {
        onReady: () => becomeFree(process),
        onFree: () => becomeFree(process),
        onLoaded: () => {
          deathsAtLoad = 0;
        },
        onExit: (exit) => lose(process, exit),
      });
      processes.set(process, { stopIdle: () => {}, tenantId: null });
    } catch (error) {
      launch = undefined;
      failQueue(asSandboxError(error, pluginId));
    } finally {
      preparing--;
      settleIfEmpty();
    }
  }

  function becomeFree(process: RunnerProcess): void {
    dispatch();
    const entry = processes.get(process);
    if (!entry || process.load > 0 || process.isEnding) return;
    entry.stopIdle();
    if (isRetired) process.end({ kind: 'idle' });
    else entry.stopIdle = clock.after(deps.idleMs, () => process.end({ kind: 'idle' }));
  }

  function lose(process: RunnerProcess, exit: ProcessExit): void {
    processes.get(process)?.stopIdle();
    processes.delete(process);
    noteDeath(exit);
    if (!exit.wasReady && !closing) failQueue(lostProcess(exit, pluginId));
    dispatch();
    settleIfEmpty();
  }

  /** A plugin that dies whenever it is loaded would otherwise cost a process start for each call. */
  function noteDeath(exit: ProcessExit): void {
    if (exit.hadLoaded || exit.ended?.kind === 'idle' || exit.ended?.kind === 'closing') return;
    deathsAtLoad++;
    lastDeath = lostProcess(exit, pluginId);
    if (deathsAtLoad < TOLERATED_DEATHS) return;
    const backoffMs = FIRST_BACKOFF_MS * 2 ** Math.min(16, deathsAtLoad - TOLERATED_DEATHS);
    nextStartAt = clock.now() + Math.min(LONGEST_BACKOFF_MS, backoffMs);
    failQueue(backoffError());
  }

  function refuseDuringBackoff(): void {
    if (deathsAtLoad >= TOLERATED_DEATHS && clock.now() < nextStartAt) throw backoffError();
  }

  function backoffError(): PlatformError {
    const seconds = Math.max(1, Math.ceil((nextStartAt - clock.now()) / 1000));
    return new PlatformError(
      lastDeath?.code ?? 'EXECUTION_ERROR',
      `Plugin ${pluginId} died ${deathsAtLoad} times in a row while it was loaded; it is tried again in ${seconds} s. The last time: ${lastDeath?.message}`,
      {
        headers: { 'Retry-After': String(seconds) },
        details: { ...lastDeath?.details, retryAfterSeconds: seconds },
      },
    );
  }

  function failQueue(error: PlatformError): void {
    const failed = queue;
    queue = [];
    queuedBytes = 0;
    for (const call of failed) call.reject(error);
  }

  function settleIfEmpty(): void {
    if (processes.size > 0 || preparing > 0 || queue.length > 0) return;
    launch = undefined;
    closing?.();
    // What it did at load is remembered until it has been good again.
    if (deathsAtLoad === 0) deps.onEmpty();
  }

  return {
    run,
    stats: () => ({
      pluginId,
      processes: processes.size,
      pids: [...processes.keys()].flatMap(({ pid }) => pid ?? []),
      running: [...processes.keys()].reduce((sum, { load }) => sum + load, 0),
      places: maxProcesses * concurrency,
      queued: queue.length,
    }),
    retire() {
      isRetired = true;
      for (const process of processes.keys()) if (process.isReady) becomeFree(process);
    },
    close() {
      return new Promise((resolve) => {
        closing = resolve;
        failQueue(unavailable('The platform is stopping.', 5));
        for (const process of processes.keys()) process.end({ kind: 'closing' });
        settleIfEmpty();
      });
    },
  };
}

import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import type { PlatformError } from '../../../kit/errors/errors.ts';
import { createFairShares, createTenancy } from '../../../kit/limits/fair-shares.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { RunOptions } from '../../execution.ts';
import type { Launch } from '../../sandbox/index.ts';
import { createWaitQueue } from '../wait-queue.ts';
import { type Call, cancelled, createCall, unavailable } from './call.ts';
import { asSandboxError, lostProcess, type ProcessExit } from './exit-reason.ts';
import { createLoadCrashes } from './load-crashes.ts';
import {
  type RunnerProcess,
  type RunnerProcessEvents,
  START_MS,
  type startRunnerProcess,
} from './runner-process.ts';

const MAX_RETRY_SECONDS = 60;
/** With separate tenants: minimum time a process stays with a busy tenant while others wait. */
const TENURE_MS = 1000;

export interface PoolDeps {
  pluginId: string;
  maxProcesses: number;
  /** A process serves only the tenant of its first call. */
  separateTenants: boolean;
  /** Concurrent calls per process. */
  concurrency: number;
  idleMs: number;
  maxQueue: number;
  clock: Clock;
  /** Prepares the sandbox; called when the first process is needed, so that changed files are noticed. */
  prepare(): Promise<Launch>;
  start(launch: Launch, events: RunnerProcessEvents): ReturnType<typeof startRunnerProcess>;
  /** Called when no process is left and the queue is empty. */
  onEmpty(): void;
}

export interface PoolStats {
  pluginId: string;
  processes: number;
  pids: number[];
  running: number;
  /** Concurrent calls once all processes have started. */
  slots: number;
  queued: number;
}

export interface Pool {
  run(request: ExecutionRequest, options: RunOptions): Promise<CommandResult>;
  stats(): PoolStats;
  /** Accepts no more calls; running and waiting calls finish, then the processes end. */
  retire(): void;
  /** Rejects waiting calls and ends every process; resolves once all have ended. */
  close(): Promise<void>;
}

interface PoolEntry {
  stopIdle: () => void;
  /** The tenant it serves; null: not bound yet, or shared by all. */
  tenantId: string | null;
  /** When it was bound to that tenant. */
  boundAt: number;
  /** Accepts no more calls, and ends once its calls are done. */
  isLeaving: boolean;
}

/** The processes of one plugin version and permission set, and the queue of their calls. */
export function createPool(deps: PoolDeps): Pool {
  const { pluginId, clock, concurrency, maxProcesses } = deps;
  const processes = new Map<RunnerProcess, PoolEntry>();
  const tenancy = createTenancy();
  const shares = createFairShares(maxProcesses * concurrency, tenancy);
  const queue = createWaitQueue({ maxCalls: deps.maxQueue, tenancy });
  let launch: Promise<Launch> | undefined;
  let preparing = 0;
  let averageMs = 100;
  const loadCrashes = createLoadCrashes(deps);
  let closing: (() => void) | undefined;
  let isRetired = false;

  async function run(request: ExecutionRequest, options: RunOptions): Promise<CommandResult> {
    if (closing) throw unavailable('The platform is stopping.', 5);
    if (options.signal?.aborted) throw cancelled(request);
    loadCrashes.requireNotDelayed();
    tenancy.note(request.tenantId);
    const call = createCall(request, options);
    const process = freeProcess(call);
    if (process) assign(process, call);
    else enqueue(call);
    return call.promise;
  }

  const hasCapacity = ({ isReady, isEnding, isStuck, load }: RunnerProcess): boolean =>
    isReady && !isEnding && !isStuck && load < concurrency;

  function freeProcess({ request }: Call): RunnerProcess | undefined {
    // A process with free capacity may not serve a tenant that has used its share.
    if (!shares.mayTake(request.tenantId)) return undefined;
    let best: RunnerProcess | undefined;
    for (const [process, { tenantId, isLeaving }] of processes) {
      if (!hasCapacity(process) || isLeaving) continue;
      if (tenantId !== null && tenantId !== request.tenantId) continue;
      // Prefers the newest process, so that surplus ones become idle and end.
      if (!best || process.load <= best.load) best = process;
    }
    return best;
  }

  function assign(process: RunnerProcess, call: Call): void {
    const startedAt = clock.monotonic();
    const entry = processes.get(process)!;
    entry.stopIdle();
    if (deps.separateTenants && entry.tenantId === null) {
      entry.tenantId = call.request.tenantId;
      entry.boundAt = startedAt;
    }
    call.promise.then(
      () => {
        averageMs += (clock.monotonic() - startedAt - averageMs) * 0.1;
      },
      () => {},
    );
    if (process.assign(call)) shares.take(call.request.tenantId);
  }

  function enqueue(call: Call): void {
    const refused = queue.enter(call);
    if (refused)
      throw unavailable(
        `Plugin ${pluginId} takes no more calls: ${refused}.`,
        retryAfterSeconds(),
        'queue_full',
      );
    const leave = (error: PlatformError) => {
      if (queue.leave(call)) call.reject(error);
    };
    call.cancelWith(() => leave(cancelled(call.request)));
    startIfNeeded();
    if (call.onBegun) return;
    // The timeout starts with the handler. A queued call waits as long again, and long enough to start a process.
    const waitMs = Math.max(call.timeoutMs, START_MS);
    const stopTimer = clock.after(waitMs, () => {
      const message = `No process of plugin ${pluginId} became free within ${waitMs} ms; all are busy.`;
      leave(unavailable(message, retryAfterSeconds()));
    });
    call.promise.then(stopTimer, stopTimer);
  }

  function retryAfterSeconds(): number {
    const seconds = Math.ceil((averageMs * (queue.size + 1)) / shares.count / 1000);
    return Math.min(MAX_RETRY_SECONDS, Math.max(1, seconds));
  }

  function dispatch(): void {
    // With a long queue, a freed process usually takes the first call, and no other process is free.
    while (queue.size > 0 && [...processes.keys()].some(hasCapacity)) {
      let process: RunnerProcess | undefined;
      const call = queue.next((first) => {
        process = freeProcess(first);
        if (!process) evictFor(first.request.tenantId);
        return process !== undefined;
      });
      // Calls that cannot run now block only their own tenants.
      if (!call) break;
      assign(process!, call);
    }
    startIfNeeded();
  }

  function startIfNeeded(): void {
    if (closing || queue.size === 0) return;
    const all = [...processes.keys()];
    const starting = preparing + all.filter(({ isReady, isEnding }) => !isReady && !isEnding).length;
    // Another process would not help tenants that have used their share.
    const missing = Math.ceil(queue.sizeOf(shares.mayTake) / concurrency) - starting;
    const slots = maxProcesses - processes.size - preparing;
    for (let count = Math.min(missing, slots); count > 0; count--) void startOne();
    if (deps.separateTenants)
      endIdle(missing - Math.max(0, slots) - all.filter(({ isEnding }) => isEnding).length);
  }

  /** Ends idle processes bound to other tenants, to make room for waiting ones. */
  function endIdle(count: number): void {
    const idle = [...processes.keys()].filter(
      ({ isReady, isEnding, load }) => isReady && !isEnding && load === 0,
    );
    for (const process of idle.slice(0, Math.max(0, count))) process.end({ kind: 'idle' });
  }

  /** The next tenant has no process: ends the longest-bound process of a tenant with endless work. */
  function evictFor(waiting: string): void {
    if (!deps.separateTenants || !shares.mayTake(waiting)) return;
    const all = [...processes];
    const isComing = all.some(([{ isReady, isEnding }, { isLeaving }]) => !isReady || isEnding || isLeaving);
    if (isComing || all.length + preparing < maxProcesses) return;
    if (all.some(([, { tenantId }]) => tenantId === waiting)) return;
    const [[process, entry]] = all.sort(([, a], [, b]) => a.boundAt - b.boundAt) as [
      [RunnerProcess, PoolEntry],
    ];
    if (clock.monotonic() - entry.boundAt < TENURE_MS) return;
    entry.isLeaving = true;
    if (process.load === 0) process.end({ kind: 'idle' });
  }

  async function startOne(): Promise<void> {
    preparing++;
    try {
      launch ??= deps.prepare();
      const ready = await launch;
      if (closing) return;
      const process = deps.start(ready, {
        onReady: () => becomeFree(process),
        onFree({ request }) {
          shares.release(request.tenantId);
          becomeFree(process);
        },
        onLoaded: loadCrashes.forget,
        onExit: (exit) => handleExit(process, exit),
      });
      processes.set(process, { stopIdle: () => {}, tenantId: null, boundAt: 0, isLeaving: false });
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
    if (isRetired || entry.isLeaving) process.end({ kind: 'idle' });
    else entry.stopIdle = clock.after(deps.idleMs, () => process.end({ kind: 'idle' }));
  }

  function handleExit(process: RunnerProcess, exit: ProcessExit): void {
    processes.get(process)?.stopIdle();
    processes.delete(process);
    const backoffError = loadCrashes.note(exit);
    if (backoffError) failQueue(backoffError);
    if (!exit.wasReady && !closing) failQueue(lostProcess(exit, pluginId));
    dispatch();
    settleIfEmpty();
  }

  function failQueue(error: PlatformError): void {
    for (const call of queue.clear()) call.reject(error);
  }

  function settleIfEmpty(): void {
    if (processes.size > 0 || preparing > 0 || queue.size > 0) return;
    launch = undefined;
    closing?.();
    // Keeps the crash count of a plugin until it has loaded successfully.
    if (loadCrashes.isClean) deps.onEmpty();
  }

  return {
    run,
    stats: () => ({
      pluginId,
      processes: processes.size,
      pids: [...processes.keys()].flatMap(({ pid }) => pid ?? []),
      running: [...processes.keys()].reduce((sum, { load }) => sum + load, 0),
      slots: shares.count,
      queued: queue.size,
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

import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import type { PlatformError } from '../../../kit/errors.ts';
import { createFairShares, createTenancy } from '../../../kit/fair-shares.ts';
import type { RunOptions } from '../../execution.ts';
import type { Launch } from '../../sandbox/index.ts';
import { createWaitingLine } from '../waiting-line.ts';
import { type Call, cancelled, createCall, unavailable } from './call.ts';
import { asSandboxError, lostProcess, type ProcessExit } from './exit-reason.ts';
import { createLoadDeaths } from './load-deaths.ts';
import {
  type RunnerProcess,
  type RunnerProcessEvents,
  START_MS,
  type startRunnerProcess,
} from './runner-process.ts';

const LONGEST_RETRY_SECONDS = 60;
/** Where processes serve one tenant each: so long one stays with a tenant that has work for it while others wait for theirs. */
const TENURE_MS = 1000;

export interface PoolDeps {
  pluginId: string;
  maxProcesses: number;
  /** A process serves the tenant of its first call and no other. */
  separateTenants: boolean;
  /** Calls one process runs at a time. */
  concurrency: number;
  idleMs: number;
  maxQueue: number;
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
  /** When it began to serve that tenant. */
  boundAt: number;
  /** Takes no more calls, and goes once those it has are done. */
  isLeaving: boolean;
}

/** The processes of one plugin version under one set of permissions, and the calls that wait for them. */
export function createPool(deps: PoolDeps): Pool {
  const { pluginId, clock, concurrency, maxProcesses } = deps;
  const processes = new Map<RunnerProcess, Kept>();
  const tenancy = createTenancy();
  const shares = createFairShares(maxProcesses * concurrency, tenancy);
  const line = createWaitingLine({ maxCalls: deps.maxQueue, tenancy });
  let launch: Promise<Launch> | undefined;
  let preparing = 0;
  let averageMs = 100;
  const loadDeaths = createLoadDeaths(deps);
  let closing: (() => void) | undefined;
  let isRetired = false;

  async function run(request: ExecutionRequest, options: RunOptions): Promise<CommandResult> {
    if (closing) throw unavailable('The platform is stopping.', 5);
    if (options.signal?.aborted) throw cancelled(request);
    loadDeaths.refuseMeanwhile();
    tenancy.note(request.tenantId);
    const call = createCall(request, options);
    const process = freeProcess(call);
    if (process) assign(process, call);
    else enqueue(call);
    return call.promise;
  }

  const hasRoom = ({ isReady, isEnding, isStuck, load }: RunnerProcess): boolean =>
    isReady && !isEnding && !isStuck && load < concurrency;

  function freeProcess({ request }: Call): RunnerProcess | undefined {
    // A process that has room for others may have none for a tenant that has its share.
    if (!shares.mayTake(request.tenantId)) return undefined;
    let best: RunnerProcess | undefined;
    for (const [process, { tenantId, isLeaving }] of processes) {
      if (!hasRoom(process) || isLeaving) continue;
      if (tenantId !== null && tenantId !== request.tenantId) continue;
      // The last one started wins, so that those that are not needed become idle and go.
      if (!best || process.load <= best.load) best = process;
    }
    return best;
  }

  function assign(process: RunnerProcess, call: Call): void {
    const startedAt = clock.monotonic();
    const kept = processes.get(process)!;
    kept.stopIdle();
    if (deps.separateTenants && kept.tenantId === null) {
      kept.tenantId = call.request.tenantId;
      kept.boundAt = startedAt;
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
    const refused = line.enter(call);
    if (refused)
      throw unavailable(
        `Plugin ${pluginId} takes no more calls: ${refused}.`,
        retryAfterSeconds(),
        'queue_full',
      );
    const leave = (error: PlatformError) => {
      if (line.leave(call)) call.reject(error);
    };
    call.cancelWith(() => leave(cancelled(call.request)));
    startIfNeeded();
    if (call.onBegun) return;
    // The handler's time begins when it runs; until then it waits as long again, or for a process to start.
    const waitMs = Math.max(call.timeoutMs, START_MS);
    const stopTimer = clock.after(waitMs, () => {
      const message = `No process of plugin ${pluginId} became free within ${waitMs} ms; all are busy.`;
      leave(unavailable(message, retryAfterSeconds()));
    });
    call.promise.then(stopTimer, stopTimer);
  }

  function retryAfterSeconds(): number {
    const seconds = Math.ceil((averageMs * (line.size + 1)) / shares.count / 1000);
    return Math.min(LONGEST_RETRY_SECONDS, Math.max(1, seconds));
  }

  function dispatch(): void {
    // Where many wait, a process that became free mostly takes the first of them, and no other is.
    while (line.size > 0 && [...processes.keys()].some(hasRoom)) {
      let process: RunnerProcess | undefined;
      const call = line.next((first) => {
        process = freeProcess(first);
        if (!process) makeWayFor(first.request.tenantId);
        return process !== undefined;
      });
      // Those that nobody can take now hold back their own tenants alone.
      if (!call) break;
      assign(process!, call);
    }
    startIfNeeded();
  }

  function startIfNeeded(): void {
    if (closing || line.size === 0) return;
    const all = [...processes.keys()];
    const starting = preparing + all.filter(({ isReady, isEnding }) => !isReady && !isEnding).length;
    // No process is of use to those who have their share.
    const missing = Math.ceil(line.sizeOf(shares.mayTake) / concurrency) - starting;
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

  /** One whose turn it is has no process: of those that have work for others without end, the one longest at it goes. */
  function makeWayFor(waiting: string): void {
    if (!deps.separateTenants || !shares.mayTake(waiting)) return;
    const all = [...processes];
    const isComing = all.some(([{ isReady, isEnding }, { isLeaving }]) => !isReady || isEnding || isLeaving);
    if (isComing || all.length + preparing < maxProcesses) return;
    if (all.some(([, { tenantId }]) => tenantId === waiting)) return;
    const [[process, kept]] = all.sort(([, a], [, b]) => a.boundAt - b.boundAt) as [[RunnerProcess, Kept]];
    if (clock.monotonic() - kept.boundAt < TENURE_MS) return;
    kept.isLeaving = true;
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
        onLoaded: loadDeaths.forget,
        onExit: (exit) => lose(process, exit),
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

  function lose(process: RunnerProcess, exit: ProcessExit): void {
    processes.get(process)?.stopIdle();
    processes.delete(process);
    const putOff = loadDeaths.note(exit);
    if (putOff) failQueue(putOff);
    if (!exit.wasReady && !closing) failQueue(lostProcess(exit, pluginId));
    dispatch();
    settleIfEmpty();
  }

  function failQueue(error: PlatformError): void {
    for (const call of line.clear()) call.reject(error);
  }

  function settleIfEmpty(): void {
    if (processes.size > 0 || preparing > 0 || line.size > 0) return;
    launch = undefined;
    closing?.();
    // What it did at load is remembered until it has been good again.
    if (loadDeaths.isClean) deps.onEmpty();
  }

  return {
    run,
    stats: () => ({
      pluginId,
      processes: processes.size,
      pids: [...processes.keys()].flatMap(({ pid }) => pid ?? []),
      running: [...processes.keys()].reduce((sum, { load }) => sum + load, 0),
      places: shares.count,
      queued: line.size,
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

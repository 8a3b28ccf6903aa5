import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import type { PlatformError } from '../../../kit/errors/errors.ts';
import { createFairShares, createTenancy, type FairShares } from '../../../kit/limits/fair-shares.ts';
import type { RunOptions } from '../../execution.ts';
import type { Launch } from '../../sandbox/index.ts';
import { createWaitQueue, type WaitQueue } from '../wait-queue.ts';
import { AheadQueue } from './ahead-queue.ts';
import { type Call, cancelled, createCall, unavailable } from './call.ts';
import { asSandboxError, lostProcess, type ProcessExit } from './exit-reason.ts';
import { createLoadCrashes, type LoadCrashes } from './load-crashes.ts';
import { PoolMembers, type PoolMembersOptions } from './pool-members.ts';
import { type RunnerProcess, type RunnerProcessEvents, START_MS } from './runner-process.ts';

const MAX_RETRY_SECONDS = 60;
/** Maximum calls that a process with one call at a time receives ahead. */
const MAX_AHEAD = 4;

export interface PoolDeps extends PoolMembersOptions {
  pluginId: string;
  maxQueue: number;
  /**
   * Prepares the sandbox. After the pool was empty, the sandbox is prepared again, so that file changes take effect.
   */
  prepare(): Promise<Launch>;
  start(launch: Launch, events: RunnerProcessEvents): RunnerProcess;
  /** Callback that is called when no process is left and the queue is empty. */
  onEmpty(): void;
}

export interface PoolStats {
  pluginId: string;
  processes: number;
  pids: number[];
  running: number;
  /** Maximum concurrent calls of all processes together. */
  slots: number;
  queued: number;
}

/** The processes of one plugin version and permission set, with a queue of calls. */
export class Pool {
  readonly #deps: PoolDeps;
  readonly #members: PoolMembers;
  readonly #tenancy = createTenancy();
  readonly #shares: FairShares;
  readonly #queue: WaitQueue;
  readonly #ahead: AheadQueue;
  readonly #loadCrashes: LoadCrashes;
  /** Processes with one call at a time that hold a slot of their tenant. */
  readonly #holders = new Set<RunnerProcess>();
  #launch: Promise<Launch> | undefined;
  #preparing = 0;
  #averageMs = 100;
  #closing: (() => void) | undefined;
  #isRetired = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
    this.#members = new PoolMembers(deps);
    this.#shares = createFairShares(deps.maxProcesses * deps.concurrency, this.#tenancy);
    this.#queue = createWaitQueue({ maxCalls: deps.maxQueue, tenancy: this.#tenancy });
    // Processes with several calls at a time or with their own tenant receive no calls ahead.
    const maxAhead = deps.concurrency > 1 || deps.separateTenants ? 0 : MAX_AHEAD;
    this.#ahead = new AheadQueue({
      maxAhead,
      members: this.#members,
      queue: this.#queue,
      shares: this.#shares,
    });
    this.#loadCrashes = createLoadCrashes(deps);
  }

  async run(request: ExecutionRequest, options: RunOptions): Promise<CommandResult> {
    if (this.#closing) throw unavailable('The platform is stopping.', 5);
    if (options.signal?.aborted) throw cancelled(request);
    this.#loadCrashes.requireNotDelayed();
    this.#tenancy.note(request.tenantId);
    const call = createCall(request, options);
    const process = this.#freeFor(call);
    if (process) this.#assign(process, call);
    else this.#enqueue(call);
    return call.promise;
  }

  stats(): PoolStats {
    const processes = this.#members.all;
    return {
      pluginId: this.#deps.pluginId,
      processes: processes.length,
      pids: processes.flatMap(({ pid }) => pid ?? []),
      running: processes.reduce((sum, { load }) => sum + load, 0) - this.#ahead.size,
      slots: this.#shares.count,
      queued: this.#queue.size + this.#ahead.size,
    };
  }

  /** Ends each process once all its calls have finished. Running and queued calls still finish. */
  retire(): void {
    this.#isRetired = true;
    for (const process of this.#members.all) if (process.isReady) this.#becomeFree(process);
  }

  /** Rejects queued calls and kills all processes. Resolves once all processes have ended. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#closing = resolve;
      this.#failQueue(unavailable('The platform is stopping.', 5));
      for (const process of this.#members.all) process.end({ kind: 'closing' });
      this.#settleIfEmpty();
    });
  }

  #freeFor({ request: { tenantId } }: Call): RunnerProcess | undefined {
    // A tenant that has used its share of the slots must wait, even if a process is free.
    return this.#shares.mayTake(tenantId) ? this.#members.freeFor(tenantId) : undefined;
  }

  #assign(process: RunnerProcess, call: Call): void {
    const { tenantId } = call.request;
    this.#members.occupy(process, tenantId);
    this.#measure(call);
    if (!process.assign(call)) return;
    this.#shares.take(tenantId);
    if (this.#deps.concurrency === 1) this.#holders.add(process);
  }

  /** Adds the duration of a call that starts now to the average. */
  #measure(call: Call): void {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    call.promise.then(
      () => {
        this.#averageMs += (clock.monotonic() - startedAt - this.#averageMs) * 0.1;
      },
      () => {},
    );
  }

  #enqueue(call: Call): void {
    const { pluginId, clock } = this.#deps;
    const refused = this.#queue.enter(call);
    if (refused) {
      const message = `Plugin ${pluginId} takes no more calls: ${refused}.`;
      throw unavailable(message, this.#retryAfterSeconds(), 'queue_full');
    }
    call.cancelWith(() => {
      const error = cancelled(call.request);
      if (this.#queue.leave(call)) call.reject(error);
      else this.#ahead.giveUp(call, error);
    });
    this.#startIfNeeded();
    this.#ahead.fill();
    if (call.onBegun) return;
    // The wait in the queue does not count towards the handler's timeout, and has a separate limit.
    const waitMs = Math.max(call.timeoutMs, START_MS);
    const stopTimer = clock.after(waitMs, () => {
      const message = this.#ahead.isBehindSlow(call)
        ? `Plugin ${pluginId} did not start the call within ${waitMs} ms: it waited behind a call that blocks its process.`
        : `No process of plugin ${pluginId} became free within ${waitMs} ms; all are busy.`;
      const error = unavailable(message, this.#retryAfterSeconds());
      if (this.#queue.leave(call)) call.reject(error);
      else this.#ahead.expire(call, error);
    });
    call.promise.then(stopTimer, stopTimer);
  }

  #retryAfterSeconds(): number {
    const waiting = this.#queue.size + this.#ahead.size;
    const seconds = Math.ceil((this.#averageMs * (waiting + 1)) / this.#shares.count / 1000);
    return Math.min(MAX_RETRY_SECONDS, Math.max(1, seconds));
  }

  #dispatch(): void {
    while (this.#queue.size > 0 && this.#members.hasCapacity) {
      let process: RunnerProcess | undefined;
      const call = this.#queue.next((first) => {
        process = this.#freeFor(first);
        if (!process) this.#evictFor(first.request.tenantId);
        return process !== undefined;
      });
      if (!call) break;
      this.#assign(process!, call);
    }
    this.#startIfNeeded();
    this.#ahead.fill();
  }

  #evictFor(tenantId: string): void {
    if (this.#deps.separateTenants && this.#shares.mayTake(tenantId))
      this.#members.evictFor(tenantId, this.#preparing);
  }

  #startIfNeeded(): void {
    const { concurrency, maxProcesses, separateTenants } = this.#deps;
    if (this.#closing || this.#queue.size === 0) return;
    const starting = this.#preparing + this.#members.starting;
    // Calls of tenants that have used their share of the slots do not count. A new process could not serve these
    // tenants.
    const waiting = this.#queue.sizeOf((tenantId) => this.#shares.mayTake(tenantId));
    const missing = Math.ceil(waiting / concurrency) - starting;
    const slots = maxProcesses - this.#members.size - this.#preparing;
    for (let count = Math.min(missing, slots); count > 0; count--) void this.#startOne();
    if (separateTenants) this.#members.endIdle(missing - Math.max(0, slots) - this.#members.ending);
  }

  async #startOne(): Promise<void> {
    this.#preparing++;
    try {
      this.#launch ??= this.#deps.prepare();
      const launch = await this.#launch;
      if (this.#closing) return;
      const process = this.#deps.start(launch, {
        onReady: () => this.#becomeFree(process),
        onFree: (call, tookMs) => {
          this.#ahead.noteEnd(call, tookMs);
          this.#release(process, call);
        },
        onStarted: (call) => {
          this.#ahead.noteStart(call);
          this.#measure(call);
        },
        onReturned: (call) => {
          this.#takeBack(call);
          this.#release(process, call);
        },
        onLoaded: () => this.#loadCrashes.reset(),
        onExit: (exit) => this.#handleExit(process, exit),
      });
      this.#members.add(process);
    } catch (error) {
      this.#launch = undefined;
      this.#failQueue(asSandboxError(error, this.#deps.pluginId));
    } finally {
      this.#preparing--;
      this.#settleIfEmpty();
    }
  }

  /** Releases the slot of a call, unless a call of the same tenant that was sent ahead takes the slot over. */
  #release(process: RunnerProcess, { request }: Call): void {
    if (this.#deps.concurrency > 1) this.#shares.release(request.tenantId);
    else if (process.load === 0 && this.#holders.delete(process)) this.#shares.release(request.tenantId);
    this.#becomeFree(process);
  }

  #takeBack(call: Call): void {
    if (this.#closing) call.reject(unavailable('The platform is stopping.', 5));
    this.#ahead.takeBack(call);
  }

  #becomeFree(process: RunnerProcess): void {
    this.#dispatch();
    this.#members.endWhenIdle(process, this.#isRetired);
  }

  #handleExit(process: RunnerProcess, exit: ProcessExit): void {
    this.#members.remove(process);
    const backoffError = this.#loadCrashes.note(exit);
    if (backoffError) this.#failQueue(backoffError);
    if (!exit.wasReady && !this.#closing) this.#failQueue(lostProcess(exit, this.#deps.pluginId));
    this.#dispatch();
    this.#settleIfEmpty();
  }

  #failQueue(error: PlatformError): void {
    for (const call of this.#queue.clear()) call.reject(error);
  }

  #settleIfEmpty(): void {
    if (this.#members.size > 0 || this.#preparing > 0 || this.#queue.size > 0) return;
    this.#launch = undefined;
    this.#closing?.();
    // The pool stores the crash count. The pool is therefore kept until the plugin has loaded successfully.
    if (this.#loadCrashes.isClean) this.#deps.onEmpty();
  }
}

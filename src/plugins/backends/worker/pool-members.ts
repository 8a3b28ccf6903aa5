import type { Clock } from '../../../kit/time/clock.ts';
import type { RunnerProcess } from './runner-process.ts';

/** Minimum time that a process stays bound to a tenant while other tenants wait for a process. */
const TENURE_MS = 1000;

export interface PoolMembersOptions {
  maxProcesses: number;
  /** Whether each process serves only the tenant of its first call. */
  separateTenants: boolean;
  /** Maximum concurrent calls per process. */
  concurrency: number;
  idleMs: number;
  clock: Clock;
}

interface Member {
  stopIdle: () => void;
  /** Tenant to which the process is bound. Null if the process is not bound yet, or serves all tenants. */
  tenantId: string | null;
  /** Monotonic time in ms at which the process was bound to its tenant. */
  boundAt: number;
  /** Whether the process accepts no more calls and ends after its current calls. */
  isLeaving: boolean;
}

/** Tracks which tenant each process of a pool serves, and ends idle processes. */
export class PoolMembers {
  readonly #options: PoolMembersOptions;
  readonly #members = new Map<RunnerProcess, Member>();

  constructor(options: PoolMembersOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#members.size;
  }

  get all(): RunnerProcess[] {
    return [...this.#members.keys()];
  }

  get starting(): number {
    return this.all.filter(({ isReady, isEnding }) => !isReady && !isEnding).length;
  }

  get ending(): number {
    return this.all.filter(({ isEnding }) => isEnding).length;
  }

  get hasCapacity(): boolean {
    return this.all.some((process) => this.#canTake(process));
  }

  add(process: RunnerProcess): void {
    this.#members.set(process, { stopIdle: () => {}, tenantId: null, boundAt: 0, isLeaving: false });
  }

  remove(process: RunnerProcess): void {
    this.#members.get(process)?.stopIdle();
    this.#members.delete(process);
  }

  freeFor(tenant: string): RunnerProcess | undefined {
    let best: RunnerProcess | undefined;
    for (const [process, { tenantId, isLeaving }] of this.#members) {
      if (!this.#canTake(process) || isLeaving) continue;
      if (tenantId !== null && tenantId !== tenant) continue;
      // Among processes with equal load, the newest is preferred, so that surplus processes become idle and end.
      if (!best || process.load <= best.load) best = process;
    }
    return best;
  }

  /**
   * Returns the busy processes that can receive calls of the tenant ahead. Returns none while a process starts or
   * another process can be started.
   */
  busyFor(tenantId: string): RunnerProcess[] {
    const { all } = this;
    if (all.length < this.#options.maxProcesses || this.starting > 0) return [];
    return all.filter(
      (process) =>
        process.load > 0 &&
        !process.isEnding &&
        !process.isStuck &&
        !this.#members.get(process)!.isLeaving &&
        process.calls.every(({ request }) => request.tenantId === tenantId),
    );
  }

  /**
   * Stops the idle timer of a process that receives a call. With `separateTenants`, binds an unbound process to the
   * tenant.
   */
  occupy(process: RunnerProcess, tenantId: string): void {
    const member = this.#members.get(process)!;
    member.stopIdle();
    if (!this.#options.separateTenants || member.tenantId !== null) return;
    member.tenantId = tenantId;
    member.boundAt = this.#options.clock.monotonic();
  }

  /**
   * Ends a process without calls after `idleMs`. If its pool is retired or the process was evicted, ends the process at
   * once.
   */
  endWhenIdle(process: RunnerProcess, isRetired: boolean): void {
    const { clock, idleMs } = this.#options;
    const member = this.#members.get(process);
    if (!member || process.load > 0 || process.isEnding) return;
    member.stopIdle();
    if (isRetired || member.isLeaving) process.end({ kind: 'idle' });
    else member.stopIdle = clock.after(idleMs, () => process.end({ kind: 'idle' }));
  }

  /** Ends up to `count` idle processes, so that processes for waiting tenants can start. */
  endIdle(count: number): void {
    const idle = this.all.filter(({ isReady, isEnding, load }) => isReady && !isEnding && load === 0);
    for (const process of idle.slice(0, Math.max(0, count))) process.end({ kind: 'idle' });
  }

  /**
   * Evicts the process that has been bound to its tenant for the longest time. Does nothing if another process can soon
   * serve the waiting tenant. `preparing` is the number of processes being started.
   */
  evictFor(waiting: string, preparing: number): void {
    const { clock, maxProcesses } = this.#options;
    const all = [...this.#members];
    const isComing = all.some(([{ isReady, isEnding }, { isLeaving }]) => !isReady || isEnding || isLeaving);
    if (isComing || all.length + preparing < maxProcesses) return;
    if (all.some(([, { tenantId }]) => tenantId === waiting)) return;
    const [longest] = all.sort(([, a], [, b]) => a.boundAt - b.boundAt);
    if (!longest) return;
    const [process, member] = longest;
    if (clock.monotonic() - member.boundAt < TENURE_MS) return;
    member.isLeaving = true;
    if (process.load === 0) process.end({ kind: 'idle' });
  }

  #canTake({ isReady, isEnding, isStuck, load }: RunnerProcess): boolean {
    return isReady && !isEnding && !isStuck && load < this.#options.concurrency;
  }
}

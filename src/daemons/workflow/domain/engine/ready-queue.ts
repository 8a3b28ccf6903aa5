import type { FairShares } from '../../../../kit/limits/fair-shares.ts';
import type { RunQueue, RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';

/** A run that is ready to be claimed. `fresh` means that the store has no jobs, steps or inbox entries of the run. */
export interface ReadyRun {
  run: RunRecord;
  fresh: boolean;
}

interface Window {
  /** First ready runs of the tenant, in the order in which the runs are claimed. */
  runs: ReadyRun[];
  /** Whether the store holds further ready runs of the tenant that are not in `runs`. */
  hasMore: boolean;
  /**
   * Whether ready runs are being read from the store. `missed` means that a run was queued during the read, so the
   * result might lack the run.
   */
  refilling: boolean;
  missed: boolean;
}

const MAX_WINDOW = 500;
const REFILL = 250;

export interface ReadyQueueDeps {
  queue: Pick<RunQueue, 'tenants' | 'ready'>;
  slots: Pick<FairShares, 'mayTake'>;
  suspects: SuspectLimit;
}

/**
 * Round-robin queue of ready runs by tenant. A tenant at its limit keeps its position. Runs that one more crash would
 * fail are excluded.
 */
export class ReadyQueue {
  readonly #deps: ReadyQueueDeps;
  /** First ready runs of each tenant. Further runs stay in the store. The map order is the round-robin order. */
  readonly #windows = new Map<string, Window>();

  constructor(deps: ReadyQueueDeps) {
    this.#deps = deps;
  }

  offer(ready: ReadyRun): void {
    const window = this.#windowOf(ready.run.tenantId);
    const { runs } = window;
    if (window.refilling) {
      window.missed = true;
      return;
    }
    if (runs.some(({ run }) => run.seq === ready.run.seq)) return;
    const isLast = runs.length === 0 || isBefore(runs.at(-1)!.run, ready.run);
    if (isLast && window.hasMore) return;
    const position = isLast ? runs.length : runs.findIndex(({ run }) => isBefore(ready.run, run));
    runs.splice(position, 0, ready);
    if (runs.length > MAX_WINDOW) {
      runs.pop();
      window.hasMore = true;
    }
  }

  /** Marks the queued copy of a run as outdated. The claim then reads the run from the store. */
  stale(runId: string): void {
    for (const { runs } of this.#windows.values())
      for (const ready of runs) if (ready.run.id === runId) ready.fresh = false;
  }

  /** Marks the queued copies of the runs of a workflow as outdated. */
  staleWorkflow({ tenantId, workflowId }: Pick<RunRecord, 'tenantId' | 'workflowId'>): void {
    for (const ready of this.#windows.get(tenantId)?.runs ?? [])
      if (ready.run.workflowId === workflowId) ready.fresh = false;
  }

  /** Removes and returns the next run in memory whose tenant has a free slot. */
  next(): ReadyRun | undefined {
    for (const [tenantId, window] of this.#windows) {
      if (window.runs.length === 0 || !this.#deps.slots.mayTake(tenantId)) continue;
      const ready = window.runs.shift()!;
      this.#windows.delete(tenantId);
      if (window.runs.length > 0 || window.hasMore) this.#windows.set(tenantId, window);
      return ready;
    }
    return undefined;
  }

  /** Returns whether a tenant with a free slot has ready runs only in the store, and none in memory. */
  get isBehind(): boolean {
    for (const [tenantId, window] of this.#windows) if (this.#lacksRuns(tenantId, window)) return true;
    return false;
  }

  /** Loads ready runs from the store for tenants with a free slot and no ready run in memory. */
  async read(): Promise<void> {
    for (const [tenantId, window] of [...this.#windows])
      if (this.#lacksRuns(tenantId, window)) await this.#refill(tenantId, window);
  }

  /** Queries the store for tenants that have ready runs. */
  async refresh(): Promise<void> {
    for (const tenantId of await this.#deps.queue.tenants()) this.#windowOf(tenantId).hasMore = true;
  }

  #windowOf(tenantId: string): Window {
    const known = this.#windows.get(tenantId);
    if (known) return known;
    const window: Window = { runs: [], hasMore: false, refilling: false, missed: false };
    this.#windows.set(tenantId, window);
    return window;
  }

  #lacksRuns(tenantId: string, { runs, hasMore }: Window): boolean {
    return runs.length === 0 && hasMore && this.#deps.slots.mayTake(tenantId);
  }

  async #refill(tenantId: string, window: Window): Promise<void> {
    if (window.refilling) return;
    window.refilling = true;
    window.missed = false;
    try {
      const runs = await this.#deps.queue.ready(tenantId, REFILL, this.#deps.suspects);
      window.runs = runs.map((run) => ({ run, fresh: false }));
      window.hasMore = window.missed || runs.length === REFILL;
      if (runs.length === 0 && !window.hasMore) this.#windows.delete(tenantId);
    } finally {
      window.refilling = false;
    }
  }
}

function isBefore(a: RunRecord, b: RunRecord): boolean {
  return a.rank !== b.rank ? a.rank > b.rank : a.seq < b.seq;
}

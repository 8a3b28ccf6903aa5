import type { RunQueue, RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';

/** A run that may be claimed. `fresh`: only its row can be stored so far. */
export interface ReadyRun {
  run: RunRecord;
  fresh: boolean;
}

/**
 * Ready runs except suspects: the first few of each tenant in memory, the rest in the store. Tenants are served round
 * robin. A tenant at its limit keeps its turn.
 */
export interface ReadyQueue {
  /** Adds a run that became ready. */
  offer(ready: ReadyRun): void;
  /** Marks a run as changed in the store, so that it is read again when claimed. */
  stale(runId: string): void;
  /** Removes and returns the next run in memory. */
  next(): ReadyRun | undefined;
  /** Whether a tenant with a free slot has ready runs in the store only. */
  readonly isBehind: boolean;
  /** Reads the next runs of those tenants. */
  read(): Promise<void>;
  /** Reads the tenants with ready runs from the store. */
  refresh(): Promise<void>;
}

interface Window {
  /** Ordered prefix of all ready runs of the tenant. */
  runs: ReadyRun[];
  /** Whether the store holds more runs of the tenant. */
  hasMore: boolean;
  /** Whether the store is being read, and whether an offer since then may be missing from the result. */
  refilling: boolean;
  missed: boolean;
}

const WINDOW = 500;
const REFILL = 250;

export function createReadyQueue(
  store: Pick<RunQueue, 'tenants' | 'ready'>,
  mayTake: (tenantId: string) => boolean,
  suspects: SuspectLimit,
): ReadyQueue {
  /** Map order is the round-robin order. */
  const windows = new Map<string, Window>();

  function windowOf(tenantId: string): Window {
    let window = windows.get(tenantId);
    if (!window) {
      window = { runs: [], hasMore: false, refilling: false, missed: false };
      windows.set(tenantId, window);
    }
    return window;
  }

  function endTurn(tenantId: string, window: Window): void {
    windows.delete(tenantId);
    if (window.runs.length > 0 || window.hasMore) windows.set(tenantId, window);
  }

  function next(): ReadyRun | undefined {
    for (const [tenantId, window] of windows) {
      if (window.runs.length === 0 || !mayTake(tenantId)) continue;
      const ready = window.runs.shift()!;
      endTurn(tenantId, window);
      return ready;
    }
    return undefined;
  }

  const isBehind = (tenantId: string, { runs, hasMore }: Window): boolean =>
    runs.length === 0 && hasMore && mayTake(tenantId);

  async function refill(tenantId: string, window: Window): Promise<void> {
    if (window.refilling) return;
    window.refilling = true;
    window.missed = false;
    try {
      const runs = await store.ready(tenantId, REFILL, suspects);
      window.runs = runs.map((run) => ({ run, fresh: false }));
      window.hasMore = window.missed || runs.length === REFILL;
      if (runs.length === 0 && !window.hasMore) windows.delete(tenantId);
    } finally {
      window.refilling = false;
    }
  }

  return {
    offer(ready) {
      const window = windowOf(ready.run.tenantId);
      const { runs } = window;
      if (window.refilling) {
        window.missed = true;
        return;
      }
      if (runs.some(({ run }) => run.seq === ready.run.seq)) return;
      const behind = runs.length === 0 || before(runs.at(-1)!.run, ready.run);
      if (behind && window.hasMore) return;
      if (behind) runs.push(ready);
      else
        runs.splice(
          runs.findIndex(({ run }) => before(ready.run, run)),
          0,
          ready,
        );
      if (runs.length > WINDOW) {
        runs.pop();
        window.hasMore = true;
      }
    },
    stale(runId) {
      for (const { runs } of windows.values())
        for (const ready of runs) if (ready.run.id === runId) ready.fresh = false;
    },
    next,
    get isBehind() {
      for (const [tenantId, window] of windows) if (isBehind(tenantId, window)) return true;
      return false;
    },
    async read() {
      for (const [tenantId, window] of [...windows]) {
        if (isBehind(tenantId, window)) await refill(tenantId, window);
      }
    },
    async refresh() {
      for (const tenantId of await store.tenants()) windowOf(tenantId).hasMore = true;
    },
  };
}

function before(a: RunRecord, b: RunRecord): boolean {
  return a.rank !== b.rank ? a.rank > b.rank : a.seq < b.seq;
}

import type { RunQueue, RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';

/** A run that may be claimed; `fresh` when nothing of it can be stored yet beside itself. */
export interface ReadyRun {
  run: RunRecord;
  fresh: boolean;
}

/**
 * Ready runs but for suspects: of each tenant the first few in memory, the rest in the store. Tenants take turns; one that may not take another
 * keeps its turn for when it may.
 */
export interface ReadyQueue {
  /** A run became ready. */
  offer(ready: ReadyRun): void;
  /** Something of it was stored meanwhile: it must be read anew when its turn comes. */
  stale(runId: string): void;
  /** The next one that is in memory. */
  next(): ReadyRun | undefined;
  /** There are some that must be read first. */
  readonly isBehind: boolean;
  /** Reads those. */
  read(): Promise<void>;
  /** Reads from the store which tenants have something. */
  refresh(): Promise<void>;
}

interface Window {
  /** In order; a prefix of all that is ready for the tenant. */
  runs: ReadyRun[];
  /** There is more in the store behind them. */
  hasMore: boolean;
  /** While the store is read: whether something was offered since, which the answer may not hold. */
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
  /** The order of the map is the order of turns. */
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

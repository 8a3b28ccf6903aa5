import type { FairShares } from '../../../../kit/fair-shares.ts';
import type { RunQueue, RunRecord } from '../../../../store/ports/index.ts';
import type { Suspects } from './suspects.ts';

export interface DueRunsDeps {
  queue: Pick<RunQueue, 'due' | 'nextWake' | 'nextSuspect'>;
  places: FairShares;
  suspects: Pick<Suspects, 'limit' | 'isBusy'>;
  /** Goes on with a run that waited. False when its tenant has no place for it. */
  takeUp(run: RunRecord): boolean;
  /** The time of a planned run has come. */
  release(run: RunRecord): Promise<void>;
}

/** Runs whose time has come. They go before what is ready, each within the share of its tenant. */
export interface DueRuns {
  /** Takes up what is due; answers when to look again. */
  look(now: number): Promise<number | null>;
  /** A place is free: goes on with what had none. False when the store must be looked at for more of that. */
  goOn(): boolean;
}

const MOST_READ = 500;

export function createDueRuns({ queue, places, suspects, takeUp, release }: DueRunsDeps): DueRuns {
  // Those just taken up are due until they are claimed on disk: a page of what is free alone might hold none but them.
  const limit = Math.min(places.count, MOST_READ);
  /** Tenants that had their share; `all` when there was no place for anybody. */
  let full: Set<string> | 'all' = new Set();
  /** What was read and had no place: while there is some, a place that is free costs no look at the store. */
  let left: RunRecord[] = [];

  async function begin(run: RunRecord): Promise<boolean> {
    if (run.status !== 'queued') return takeUp(run);
    await release(run);
    return true;
  }

  /** Claims the next suspect, if none is in memory. */
  async function beginSuspect(now: number, passed: Set<string>): Promise<void> {
    if (suspects.isBusy) return;
    const run = await queue.nextSuspect(now, suspects.limit, [...passed]);
    if (!run || takeUp(run)) return;
    passed.add(run.tenantId);
    left.push(run);
  }

  /** Overdue suspects are excluded: the end of the one in memory triggers the next look. */
  const nextWake = (after: number, now: number): Promise<number | null> =>
    queue.nextWake(after, { ...suspects.limit, now });

  return {
    async look(now) {
      const passed = new Set<string>();
      full = passed;
      left = [];
      // What is due of others may lie behind a page of one that has its share.
      for (let known = -1; passed.size > known; ) {
        known = passed.size;
        if (places.free === 0) {
          full = 'all';
          return nextWake(now, now);
        }
        const due = await queue.due(now, limit, [...passed], suspects.limit);
        for (const run of due) {
          if (await begin(run)) continue;
          passed.add(run.tenantId);
          left.push(run);
        }
        if (due.length < limit) {
          await beginSuspect(now, passed);
          return nextWake(passed.size > 0 ? now : 0, now);
        }
      }
      return now;
    },
    goOn() {
      const next = left.findIndex(({ tenantId }) => places.mayTake(tenantId));
      if (next === -1) return full !== 'all' && ![...full].some((tenantId) => places.mayTake(tenantId));
      takeUp(left[next]!);
      left.splice(next, 1);
      return true;
    },
  };
}

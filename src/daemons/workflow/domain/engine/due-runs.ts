import type { FairShares } from '../../../../kit/limits/fair-shares.ts';
import type { RunQueue, RunRecord } from '../../../../store/ports/index.ts';
import type { Suspects } from './suspects.ts';

export interface DueRunsDeps {
  queue: Pick<RunQueue, 'due' | 'nextWake' | 'nextSuspect'>;
  places: FairShares;
  suspects: Pick<Suspects, 'limit' | 'isBusy'>;
  /** Claims a waiting run. False when its tenant has no free slot. */
  takeUp(run: RunRecord): boolean;
  /** Queues or fails a planned run at its planned time. */
  release(run: RunRecord): Promise<void>;
}

/** Runs that are due. They take precedence over ready runs, within the fair share of their tenant. */
export interface DueRuns {
  /** Claims due runs. Returns the time of the next look. */
  look(now: number): Promise<number | null>;
  /** Claims a run left over from the last look when a slot becomes free. False when the store may hold more. */
  goOn(): boolean;
}

const MOST_READ = 500;

export function createDueRuns({ queue, places, suspects, takeUp, release }: DueRunsDeps): DueRuns {
  // Claimed runs stay due until their claim is on disk, so a smaller page might hold nothing else.
  const limit = Math.min(places.count, MOST_READ);
  /** Tenants that reached their share; `all` when no slot was free. */
  let full: Set<string> | 'all' = new Set();
  /** Due runs that found no free slot. They are claimed before the store is read again. */
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
      // Due runs of other tenants may lie beyond a page of one tenant that reached its share.
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

import type { FairShares } from '../../../../kit/limits/fair-shares.ts';
import type { RunQueue, RunRecord } from '../../../../store/ports/index.ts';
import type { Suspects } from './suspects.ts';

export interface DueRunsDeps {
  queue: Pick<RunQueue, 'due' | 'nextWake' | 'nextSuspect'>;
  slots: FairShares;
  suspects: Pick<Suspects, 'limit' | 'isBusy'>;
  /** Claims a waiting run. Returns false if the tenant has no free slot. */
  claim(run: RunRecord): boolean;
  /** Queues a scheduled run at its start time, or fails the run. */
  release(run: RunRecord): Promise<void>;
}

const MAX_READ = 500;

/** Claims due runs. Due runs take precedence over ready runs within the fair share of their tenant. */
export class DueRuns {
  readonly #deps: DueRunsDeps;
  readonly #limit: number;
  /** Tenants that have reached their fair share, or `all` if no slot was free. */
  #full: ReadonlySet<string> | 'all' = new Set();
  /** Due runs whose tenant had no free slot. These runs are claimed before the store is read again. */
  #left: RunRecord[] = [];

  constructor(deps: DueRunsDeps) {
    this.#deps = deps;
    // Claimed runs stay due until their claim is on disk. A smaller page might therefore contain only claimed runs.
    this.#limit = Math.min(deps.slots.count, MAX_READ);
  }

  /** Claims due runs. Returns the time at which `look` must be called again, or null. */
  async look(now: number): Promise<number | null> {
    const { slots, queue, suspects } = this.#deps;
    const passed = new Set<string>();
    this.#full = passed;
    this.#left = [];
    // Runs of tenants that have reached their share can fill a whole page. The next page therefore excludes these
    // tenants.
    for (let known = -1; passed.size > known; ) {
      known = passed.size;
      if (slots.free === 0) {
        this.#full = 'all';
        return this.#nextWake(now, now);
      }
      const due = await queue.due(now, this.#limit, [...passed], suspects.limit);
      for (const run of due) {
        if (await this.#begin(run)) continue;
        passed.add(run.tenantId);
        this.#left.push(run);
      }
      if (due.length < this.#limit) {
        await this.#beginSuspect(now, passed);
        return this.#nextWake(passed.size > 0 ? now : 0, now);
      }
    }
    return now;
  }

  /**
   * Claims a due run whose tenant had no free slot at the last read. Returns false if further runs must be read from
   * the store.
   */
  claimNext(): boolean {
    const { slots, claim } = this.#deps;
    const next = this.#left.findIndex(({ tenantId }) => slots.mayTake(tenantId));
    if (next === -1)
      return this.#full !== 'all' && ![...this.#full].some((tenantId) => slots.mayTake(tenantId));
    claim(this.#left[next]!);
    this.#left.splice(next, 1);
    return true;
  }

  async #begin(run: RunRecord): Promise<boolean> {
    if (run.status !== 'queued') return this.#deps.claim(run);
    await this.#deps.release(run);
    return true;
  }

  /** Claims the next suspect unless another suspect is in memory. A suspect is a run that one more crash would fail. */
  async #beginSuspect(now: number, passed: Set<string>): Promise<void> {
    const { queue, suspects, claim } = this.#deps;
    if (suspects.isBusy) return;
    const run = await queue.nextSuspect(now, suspects.limit, [...passed]);
    if (!run || claim(run)) return;
    passed.add(run.tenantId);
    this.#left.push(run);
  }

  /**
   * Returns the next wake-up time. Overdue suspects are ignored, because the end of the suspect in memory triggers
   * another read. A suspect is a run that one more crash would fail.
   */
  #nextWake(after: number, now: number): Promise<number | null> {
    const { queue, suspects } = this.#deps;
    return queue.nextWake(after, { ...suspects.limit, now });
  }
}

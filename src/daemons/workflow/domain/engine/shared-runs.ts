import type { FairShares } from '../../../../kit/limits/fair-shares.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  ClaimedRun,
  RunQueue,
  RunRecord,
  SharedRunStore,
  TenantShare,
} from '../../../../store/ports/index.ts';
import type { EngineHost, Lease } from './ports.ts';
import type { ReadyRun } from './ready-queue.ts';
import type { RunSource } from './run-source.ts';
import type { Suspects } from './suspects.ts';

export interface SharedRunsDeps {
  store: SharedRunStore;
  queue: Pick<RunQueue, 'nextWake' | 'nextSuspect'>;
  slots: FairShares;
  suspects: Pick<Suspects, 'limit' | 'isBusy'>;
  host: Pick<EngineHost, 'isWorking' | 'fence'>;
  lease: Lease;
  clock: Clock;
  logger: Logger;
  /** Returns the ids of the runs that this process executes or is about to execute. */
  known(): string[];
  /** Starts a claimed run. Returns false if its tenant has no free slot. */
  claim(ready: ReadyRun): boolean;
  /** Queues or fails a planned run at its planned time. */
  release(run: RunRecord): Promise<void>;
}

const MAX_PLANNED = 500;

/**
 * Runs of a store that several processes share. Each process claims as many runs as it has slots, on the rows of the
 * runs. Due runs take precedence over ready runs. Tenants take turns, within their fair share of this process.
 */
export class SharedRuns implements RunSource {
  readonly #deps: SharedRunsDeps;
  /** Tenants that had ready runs at the last read, or that were offered since. */
  readonly #tenants = new Set<string>();
  /** Whether the store may hold ready runs. */
  #hasReady = true;
  /** Time from which the store may hold due runs. */
  #dueAt = 0;
  #claiming: Promise<void> = Promise.resolve();
  #isClaiming = false;
  #again = false;
  #rounds = 0;

  constructor(deps: SharedRunsDeps) {
    this.#deps = deps;
  }

  offer({ tenantId }: RunRecord): void {
    this.#tenants.add(tenantId);
    this.#hasReady = true;
    this.#claimSoon();
  }

  /** Claimed runs are read when they are claimed, so no copy becomes outdated. */
  stale(): void {}

  staleWorkflow(): void {}

  async refresh(): Promise<void> {
    for (const tenantId of await this.#deps.store.tenants('ready')) this.#tenants.add(tenantId);
    this.#hasReady = true;
  }

  async look(now: number): Promise<number | null> {
    const { queue, suspects } = this.#deps;
    if (!this.#mayClaim) return null;
    await this.refresh();
    this.#dueAt = 0;
    await this.#claimAll();
    return queue.nextWake(now, { ...suspects.limit, now });
  }

  slotReleased(): void {
    // A claim in progress may have passed over the tenant whose slot is now free.
    const isWanted = this.#isClaiming || this.#hasReady || this.#dueAt <= this.#deps.clock.now();
    if (isWanted) this.#claimSoon();
  }

  get #mayClaim(): boolean {
    return this.#deps.host.isWorking && this.#deps.lease.isHeld;
  }

  #claimSoon(): void {
    this.#claimAll().catch((error) => {
      const message = 'Runs could not be claimed; the next attempt follows in a second';
      this.#deps.logger.error(message, { error });
    });
  }

  /** Claims one batch at a time, because each claim depends on the slots that the one before has taken. */
  #claimAll(): Promise<void> {
    this.#again = true;
    if (!this.#isClaiming) this.#claiming = this.#claimOn();
    return this.#claiming;
  }

  async #claimOn(): Promise<void> {
    this.#isClaiming = true;
    try {
      while (this.#again) {
        this.#again = false;
        if (this.#dueAt <= this.#deps.clock.now()) await this.#claimDue();
        if (this.#hasReady) await this.#claimReady();
      }
    } finally {
      this.#isClaiming = false;
    }
  }

  async #claimDue(): Promise<void> {
    const { store, queue, suspects, clock, release } = this.#deps;
    const now = clock.now();
    this.#dueAt = Infinity;
    // The reply to a claim or write is lost if the connection breaks after its commit.
    await store.unclaimExcept(this.#deps.host.fence, this.#deps.known(), now);
    for (const run of await store.planned(now, MAX_PLANNED)) await release(run);
    await this.#claimSuspect(now);
    await this.#claimBatches('due', await store.tenants('due'), now);
    const next = (await queue.nextWake(0, { ...suspects.limit, now })) ?? Infinity;
    this.#dueAt = Math.min(this.#dueAt, next);
  }

  async #claimReady(): Promise<void> {
    const tenants = [...this.#tenants];
    this.#tenants.clear();
    this.#hasReady = false;
    const exhausted = await this.#claimBatches('ready', tenants, this.#deps.clock.now());
    for (const tenantId of tenants) if (!exhausted.has(tenantId)) this.#tenants.add(tenantId);
    if (this.#tenants.size > 0) this.#hasReady = true;
  }

  /** Claims runs until no slot is free or no run is left. Returns the tenants that have no more runs to claim. */
  async #claimBatches(
    queue: 'ready' | 'due',
    tenants: readonly string[],
    now: number,
  ): Promise<ReadonlySet<string>> {
    const { store, slots, suspects, host } = this.#deps;
    for (;;) {
      const shares = this.#sharesOf(tenants);
      if (!this.#mayClaim || shares.length === 0) return new Set();
      const options = { shares, limit: slots.free, now, suspects: suspects.limit };
      const claimed = await store.claim(host.fence, queue, options);
      await this.#begin(claimed);
      const [share, ...others] = shares;
      const isLast = claimed.length === 0 || (others.length === 0 && claimed.length < share!.limit);
      if (isLast) return new Set(shares.map(({ tenantId }) => tenantId));
    }
  }

  /** Divides the free slots among the tenants. Each batch begins with another tenant. */
  #sharesOf(tenants: readonly string[]): TenantShare[] {
    const { slots } = this.#deps;
    const free = tenants.filter((tenantId) => slots.mayTake(tenantId));
    const first = free.length === 0 ? 0 : this.#rounds++ % free.length;
    const limit = Math.ceil(slots.free / Math.max(1, free.length));
    return [...free.slice(first), ...free.slice(0, first)].map((tenantId) => ({
      tenantId,
      limit: Math.min(limit, slots.available(tenantId)),
    }));
  }

  /** Starts claimed runs, and gives back those for which the shares of other claimed runs left no slot. */
  async #begin(claimed: readonly ClaimedRun[]): Promise<void> {
    const { store, host, claim } = this.#deps;
    const left = claimed.filter(({ run, isFresh }) => !claim({ run, fresh: isFresh }));
    if (left.length > 0)
      await store.unclaim(
        host.fence,
        left.map(({ run }) => run.seq),
      );
  }

  /** Starts the next suspect, if no suspect is in memory. Its first write claims it. */
  async #claimSuspect(now: number): Promise<void> {
    const { queue, suspects, claim } = this.#deps;
    if (suspects.isBusy || !this.#mayClaim) return;
    const run = await queue.nextSuspect(now, suspects.limit, []);
    if (run) claim({ run, fresh: false });
  }
}

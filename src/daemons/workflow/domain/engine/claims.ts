import { type BoundedCache, createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import { createFairShares, type FairShares } from '../../../../kit/limits/fair-shares.ts';
import { MAX_SHORT_WAIT_MS } from '../../../../kit/time/deadlines.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { LoadedRun, RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import { createFairSlots, type FairSlots } from '../effects/fair-slots.ts';
import { Program } from '../run/program.ts';
import { isPaused } from '../states.ts';
import { ActiveRun, type Departure } from './active-run.ts';
import { failedByDefinition } from './failed-by-definition.ts';
import { LocalRuns } from './local-runs.ts';
import { createPlannedRuns } from './planned-runs.ts';
import type { EngineDeps, EngineHost } from './ports.ts';
import type { ReadyRun } from './ready-queue.ts';
import type { RunSource } from './run-source.ts';
import { SharedRuns } from './shared-runs.ts';
import { Suspects } from './suspects.ts';

/** Maximum number of timers for waiting runs that only the store holds, and of their cached deadlines. */
const MAX_SHORT_WAITS = 10_000;
const CLAIMABLE: ReadonlySet<string> = new Set(['queued', 'waiting', 'cancelling']);

/** Claims ready and due runs as slots become free, and tracks the runs in memory. */
export class Claims {
  readonly active = new Map<string, ActiveRun>();
  /**
   * Runs that are being loaded from the store. Each promise settles when the run was added to `active` or was dropped.
   */
  readonly opening = new Map<string, Promise<void>>();
  readonly #deps: EngineDeps;
  readonly #host: EngineHost;
  /** Concurrency slots for runs in memory. Each run in `opening` or `active` holds a slot of its tenant. */
  readonly #runSlots: FairShares;
  readonly #stepSlots: FairSlots;
  readonly #suspects: Suspects;
  readonly #source: RunSource;
  /** Deadlines of runs that wait outside memory, on the monotonic clock, by run id. */
  readonly #deadlines: BoundedCache<ReadonlyMap<number, number>> = createBoundedCache(MAX_SHORT_WAITS);
  #shortWaits = 0;

  constructor(deps: EngineDeps, host: EngineHost) {
    const { limits } = deps;
    this.#deps = deps;
    this.#host = host;
    this.#runSlots = createFairShares(limits.runs);
    this.#stepSlots = createFairSlots(limits.steps);
    this.#suspects = new Suspects(limits.poisonAfter, () => host.requestTick());
    this.#source = this.#openSource();
  }

  /**
   * Queues a ready run, or schedules a check for a run that wakes up later. A run that one more crash would fail is
   * left to the check for due runs. `fresh` means that the store has no jobs, steps or inbox entries of the run.
   */
  offer(run: RunRecord, fresh: boolean): void {
    if (!this.#host.isWorking || isPaused(run)) return;
    if (run.ready && this.#suspects.has(run)) this.#host.requestTick();
    else if (run.ready) this.#source.offer(run, fresh);
    else if (run.wakeAt !== null) this.#host.notice(run.wakeAt);
  }

  /** Marks the queued copy of a run as outdated. The next claim then reads the run from the store. */
  stale(runId: string): void {
    this.#source.stale(runId);
  }

  /** Marks the queued copies of the runs of a workflow as outdated. */
  staleWorkflow(workflow: Pick<RunRecord, 'tenantId' | 'workflowId'>): void {
    this.#source.staleWorkflow(workflow);
  }

  /** Reads from the store which tenants have ready runs. */
  refresh(): Promise<void> {
    return this.#source.refresh();
  }

  /** Claims due runs, then ready runs. Returns the time at which `look` must be called again, or null. */
  look(now: number): Promise<number | null> {
    return this.#source.look(now);
  }

  #openSource(): RunSource {
    const { store, cluster, clock, logger } = this.#deps;
    const shared = {
      ...{ queue: store.queue, slots: this.#runSlots, suspects: this.#suspects, host: this.#host, logger },
      claim: (ready: ReadyRun) => this.#claim(ready),
      release: createPlannedRuns({ ...this.#deps, host: this.#host }),
    };
    if (!cluster) return new LocalRuns(shared);
    const known = () => [...this.active.keys(), ...this.opening.keys()];
    return new SharedRuns({ ...shared, store: cluster.store, lease: cluster, clock, known });
  }

  /** Claims a run. Returns false if the tenant has no free slot. */
  #claim({ run, fresh }: ReadyRun): boolean {
    const leaving = this.active.get(run.id);
    if (leaving || this.opening.has(run.id)) {
      if (run.fence !== null) void leaving?.left.then(() => this.#unclaim(run));
      return true;
    }
    if (!this.#runSlots.take(run.tenantId)) return false;
    if (!this.#suspects.mayBegin(run)) {
      this.#runSlots.release(run.tenantId);
      return true;
    }
    const workflow = fresh ? this.#deps.cachedDefinition(run.definitionHash) : undefined;
    if (workflow) this.#activate({ run: { ...run }, jobs: [], steps: [], inbox: [] }, workflow);
    else this.opening.set(run.id, this.#open(run));
    return true;
  }

  async #open(run: RunRecord): Promise<void> {
    const activated = await this.#tryOpen(run);
    this.opening.delete(run.id);
    if (activated) return;
    if (run.fence !== null) this.#unclaimLater(run);
    this.#suspects.left(run);
    this.#leaveSlot(run.tenantId);
  }

  /** Loads and activates a run. Returns false if the run cannot be claimed at this time. */
  async #tryOpen(run: RunRecord): Promise<boolean> {
    const { store, clock, logger } = this.#deps;
    try {
      const loaded = await store.runs.load(run.seq);
      // The run might have been claimed, cancelled or finished while it was queued.
      if (!loaded || loaded.run.fence !== run.fence || !CLAIMABLE.has(loaded.run.status)) return false;
      if ((loaded.run.status === 'queued' && !loaded.run.ready) || isPaused(loaded.run)) return false;
      const workflow = await this.#definitionFor(loaded.run);
      if (!workflow || !this.#host.isWorking) return false;
      this.#activate(loaded, workflow);
      return true;
    } catch (error) {
      logger.error(`Run ${run.id} could not be claimed; the next attempt follows in a second`, { error });
      clock.after(seconds(1), () => this.offer(run, false));
      return false;
    }
  }

  /** Gives a claimed run back, so that it is claimed again. */
  async #unclaim(run: RunRecord): Promise<void> {
    const { cluster, logger } = this.#deps;
    try {
      await cluster?.store.unclaim(this.#host.fence, [run.seq]);
      this.#host.requestTick();
    } catch (error) {
      logger.error(`Run ${run.id} could not be given back; the next attempt follows in a second`, { error });
      this.#unclaimLater(run);
    }
  }

  #unclaimLater(run: RunRecord): void {
    this.#deps.clock.after(seconds(1), () => void this.#unclaim(run));
  }

  #leaveSlot(tenantId: string): void {
    this.#runSlots.release(tenantId);
    this.#source.slotReleased();
  }

  /**
   * Returns the run's definition. If the definition is lost or no longer compiles, fails the run and returns undefined,
   * because a retry would not help.
   */
  async #definitionFor(run: RunRecord): Promise<CompiledWorkflow | undefined> {
    const { store, clock, hooks } = this.#deps;
    try {
      return await this.#deps.definitionOf(run.definitionHash);
    } catch (thrown) {
      if (!isLostDefinition(thrown)) throw thrown;
      const { write, failed } = failedByDefinition(run, thrown, clock.now());
      const { applied, promoted } = await store.runs.write(write);
      if (!applied) return undefined;
      hooks.changed(run.id);
      for (const next of promoted) this.offer(next, false);
      this.#host.ended(failed);
      void this.#host.cancelChildren(run.id);
      return undefined;
    }
  }

  #activate(loaded: LoadedRun, workflow: CompiledWorkflow): void {
    const { limits, store, cluster, evaluator, hooks } = this.#deps;
    const { run } = loaded;
    const claim = {
      loaded,
      program: new Program(workflow, evaluator.within),
      fence: this.#host.fence,
      isFromBefore: this.#isFromBefore(run),
      limits,
      deadlines: this.#deadlines.get(run.id) ?? new Map(),
    };
    const one = new ActiveRun(claim, {
      ...this.#deps,
      store: store.runs,
      lease: cluster,
      slots: this.#stepSlots,
      jobStarted: hooks.jobStarted,
      jobEnded: hooks.jobEnded,
      finishedRuns: store.runs.finished,
      openChildren: store.runs.openChildren,
      cancelChild: (id) => this.#host.cancelById(id),
      startChild: (request) => this.#host.startChild(request),
      written: (written, { promoted }) => {
        hooks.changed(written.id);
        if (written.crashes + written.kills === 0) this.#suspects.left(written);
        for (const next of promoted) this.offer(next, false);
      },
    });
    this.active.set(run.id, one);
    void one.left.then((departure) => this.#departed(one, departure));
  }

  /** Whether the run may have been in flight when a process crashed, which may have been a process of another node. */
  #isFromBefore(run: RunRecord): boolean {
    if (this.#deps.cluster && run.resumeCount > 0) return true;
    return (run.wakeAt ?? run.runAt ?? run.createdAt) < this.#host.startedAt;
  }

  #departed(one: ActiveRun, departure: Departure): void {
    const { run } = one;
    this.active.delete(run.id);
    this.#suspects.left(run);
    this.#deadlines.delete(run.id);
    if (departure === 'ended') this.#host.ended(run, one.jobs());
    if (departure === 'parked') {
      if (one.deadlines.size > 0) this.#deadlines.set(run.id, one.deadlines);
      if (one.missedNews) void this.#host.wake(run.id);
      else if (run.wakeAt !== null) {
        this.#host.notice(run.wakeAt);
        this.#wakeInTime(run, one.wakesInMs);
      }
    }
    this.#leaveSlot(run.tenantId);
  }

  /**
   * Sets a timer for a short wait. The timer wakes the run if the wall clock was set back during the wait. The store
   * uses the wall clock and would wake the run too late.
   */
  #wakeInTime({ id, wakeAt }: RunRecord, leftMs: number): void {
    const { clock } = this.#deps;
    if (leftMs > MAX_SHORT_WAIT_MS || this.#shortWaits >= MAX_SHORT_WAITS) return;
    this.#shortWaits++;
    clock.after(leftMs, () => {
      this.#shortWaits--;
      if (this.#host.isWorking && clock.now() < wakeAt!) void this.#host.wake(id);
    });
  }
}

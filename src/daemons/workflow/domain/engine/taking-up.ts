import { setImmediate as nextTurn } from 'node:timers/promises';
import { createFairShares } from '../../../../kit/limits/fair-shares.ts';
import { createDeadlines, MAX_SHORT_WAIT_MS } from '../../../../kit/time/deadlines.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { LoadedRun, RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import { type ActiveRun, createActiveRun } from '../run/active-run.ts';
import { createDueRuns } from './due-runs.ts';
import type { EngineDeps, JobCounts } from './engine-ports.ts';
import { failedByDefinition } from './failed-by-definition.ts';
import { createPlannedRuns } from './planned-runs.ts';
import { createReadyQueue, type ReadyRun } from './ready-queue.ts';
import { createFairSlots } from './slots.ts';
import { Suspects } from './suspects.ts';

/** Maximum parked runs with their own timer. */
const MAX_SHORT_WAITS = 10_000;

export interface TakingUpDeps extends EngineDeps {
  /** Fence token of this boot. */
  fence(): number;
  startedAt(): number;
  /** False before the start and after the stop; then nothing is claimed. */
  isWorking(): boolean;
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Wakes a run that received news while it was leaving memory. */
  wake(runId: string): Promise<void>;
  /** Reports when a run falls due. */
  notice(at: number): void;
  /** Triggers a look at due runs: more may be due, and slots free. */
  lookAgain(): void;
  cancelById(runId: string): Promise<boolean>;
  cancelChildren(runId: string): Promise<void>;
  supersede(ids: readonly string[]): Promise<void>;
}

/** Claims ready and due runs as slots become free, and tracks the runs in memory. */
export interface TakingUp {
  readonly active: ReadonlyMap<string, ActiveRun>;
  /** Runs being read; each promise settles once the run is in `active`, or was dropped. */
  readonly opening: ReadonlyMap<string, Promise<void>>;
  /** Queues a ready or planned run. `fresh`: only its row is stored. */
  offer(run: RunRecord, fresh: boolean): void;
  /** Marks a run outside memory as changed in the store, so that it is read again when claimed. */
  stale(runId: string): void;
  /** Reads the tenants with ready runs from the store. */
  refresh(): Promise<void>;
  /** Claims due runs, then ready runs. Returns the time of the next look. */
  look(now: number): Promise<number | null>;
}

export function createTakingUp(deps: TakingUpDeps): TakingUp {
  const { store, clock, random, logger, limits, hooks, isWorking, ended } = deps;
  const active = new Map<string, ActiveRun>();
  const opening = new Map<string, Promise<void>>();
  /** Slots for runs in memory. Each run in `opening` or `active` holds a slot of its tenant. */
  const places = createFairShares(limits.runs);
  const slots = createFairSlots(limits.steps);
  const suspects = new Suspects(limits.poisonAfter, deps.lookAgain);
  const ready = createReadyQueue(store.queue, places.mayTake, suspects.limit);
  const due = createDueRuns({
    queue: store.queue,
    places,
    suspects,
    takeUp: (run) => takeUp({ run, fresh: false }),
    release: createPlannedRuns({ ...deps, offer: (run) => offer(run, false) }),
  });
  const deadlines = createDeadlines(clock);
  let shortWaits = 0;
  let pumping = false;

  function offer(run: RunRecord, fresh: boolean): void {
    if (!isWorking()) return;
    if (run.ready && suspects.has(run)) deps.lookAgain();
    else if (run.ready) {
      ready.offer({ run, fresh });
      pump();
    } else if (run.wakeAt !== null) deps.notice(run.wakeAt);
  }

  /** Claims ready runs within the shares of their tenants: those in memory at once, others as they are read. */
  function pump(): void {
    while (isWorking()) {
      const next = ready.next();
      if (!next) break;
      takeUp(next);
    }
    if (isWorking() && ready.isBehind && !pumping) void pumpFromStore();
  }

  async function pumpFromStore(): Promise<void> {
    pumping = true;
    try {
      while (isWorking() && ready.isBehind) {
        await ready.read();
        pump();
        // A page may hold only claimed runs, which leave it once their claims are written.
        await nextTurn();
      }
    } catch (error) {
      logger.error('Queued runs could not be read; tried again in a second', { error });
    } finally {
      pumping = false;
    }
  }

  /** Returns false when the tenant has no free slot. */
  function takeUp({ run, fresh }: ReadyRun): boolean {
    if (active.has(run.id) || opening.has(run.id)) return true;
    if (!places.take(run.tenantId)) return false;
    if (!suspects.mayBegin(run)) {
      places.release(run.tenantId);
      return true;
    }
    const workflow = fresh ? deps.definitionHere(run.definitionHash) : undefined;
    if (workflow) activate({ run: { ...run }, jobs: [], steps: [], inbox: [] }, workflow);
    else opening.set(run.id, open(run));
    return true;
  }

  async function open(run: RunRecord): Promise<void> {
    const activated = await tryOpen(run);
    opening.delete(run.id);
    if (activated) return;
    suspects.left(run);
    leavePlace(run.tenantId);
  }

  /** Loads and activates a run. False when it is not claimable now. */
  async function tryOpen(run: RunRecord): Promise<boolean> {
    const { seq, id } = run;
    try {
      const loaded = await store.runs.load(seq);
      // Claimed, cancelled or finished since it was queued.
      if (
        !loaded ||
        loaded.run.fence !== null ||
        !['queued', 'waiting', 'cancelling'].includes(loaded.run.status)
      )
        return false;
      if (loaded.run.status === 'queued' && !loaded.run.ready) return false;
      const workflow = await definitionFor(loaded.run);
      if (!workflow || !isWorking()) return false;
      activate(loaded, workflow);
      return true;
    } catch (error) {
      logger.error(`Run ${id} could not be taken up; tried again in a second`, { error });
      clock.after(seconds(1), () => offer(run, false));
      return false;
    }
  }

  function leavePlace(tenantId: string): void {
    places.release(tenantId);
    if (due.goOn()) pump();
    else deps.lookAgain();
  }

  /** Fails the run if its definition is lost or no longer compiles, because a retry would not help. */
  async function definitionFor(run: RunRecord): Promise<CompiledWorkflow | undefined> {
    try {
      return await deps.definitionOf(run.definitionHash);
    } catch (thrown) {
      if (!isLostDefinition(thrown)) throw thrown;
      const { write, failed } = failedByDefinition(run, thrown, clock.now());
      const { applied, promoted } = await store.runs.write(write);
      if (!applied) return undefined;
      hooks.changed(run.id);
      for (const next of promoted) offer(next, false);
      ended(failed);
      void deps.cancelChildren(run.id);
      return undefined;
    }
  }

  function activate(loaded: LoadedRun, workflow: CompiledWorkflow): void {
    const { id } = loaded.run;
    const one = createActiveRun(loaded, workflow, deps.fence(), {
      store: store.runs,
      ...{ clock, deadlines },
      random,
      logger,
      slots,
      evaluator: deps.evaluator,
      isFromBefore: (loaded.run.wakeAt ?? loaded.run.runAt ?? loaded.run.createdAt) < deps.startedAt(),
      mostOutput: limits.mostOutput,
      cleanUpMs: limits.cleanUpMs,
      maxPluginWaitMs: limits.maxPluginWaitMs,
      tracer: deps.tracer,
      passes: deps.passes,
      pluginWaits: deps.pluginWaits,
      jobStarted: hooks.jobStarted,
      jobEnded: hooks.jobEnded,
      finishedRuns: store.runs.finished,
      openChildren: store.runs.openChildren,
      cancelChild: deps.cancelById,
      written(run, { promoted }) {
        hooks.changed(run.id);
        if (run.crashes + run.kills === 0) suspects.left(run);
        for (const next of promoted) offer(next, false);
      },
    });
    active.set(id, one);
    void one.left.then((departure) => {
      active.delete(id);
      suspects.left(one.run);
      if (departure === 'ended') ended(one.run, one.jobs());
      if (departure === 'parked') {
        if (one.wasPokedLate) void deps.wake(id);
        else if (one.run.wakeAt !== null) {
          deps.notice(one.run.wakeAt);
          wakeInTime(one.run, one.wakesInMs());
        }
      }
      leavePlace(one.run.tenantId);
    });
  }

  /** Wakes a short wait by a timer, because the store uses the wall clock and is late after a step back. */
  function wakeInTime({ id, wakeAt }: RunRecord, leftMs: number): void {
    if (leftMs > MAX_SHORT_WAIT_MS || shortWaits >= MAX_SHORT_WAITS) return;
    shortWaits++;
    clock.after(leftMs, () => {
      shortWaits--;
      if (isWorking() && clock.now() < wakeAt!) void deps.wake(id);
    });
  }

  return {
    active,
    opening,
    offer,
    stale: ready.stale,
    refresh: ready.refresh,
    async look(now) {
      const next = await due.look(now);
      pump();
      return next;
    },
  };
}

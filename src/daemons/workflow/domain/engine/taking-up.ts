import { setImmediate as nextTurn } from 'node:timers/promises';
import { createDeadlines, MAX_SHORT_WAIT_MS } from '../../../../kit/deadlines.ts';
import { seconds } from '../../../../kit/duration.ts';
import { createFairShares } from '../../../../kit/fair-shares.ts';
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

/** Parked runs with a timer of their own. */
const MAX_SHORT_WAITS = 10_000;

export interface TakingUpDeps extends EngineDeps {
  /** Of this boot. */
  fence(): number;
  startedAt(): number;
  /** False before the start and after the stop: nothing is taken up. */
  isWorking(): boolean;
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Something came for a run as it was being let go. */
  wake(runId: string): Promise<void>;
  /** When a run falls due. */
  notice(at: number): void;
  /** There may be more that is due, and room for it. */
  lookAgain(): void;
  cancelById(runId: string): Promise<boolean>;
  cancelChildren(runId: string): Promise<void>;
  supersede(ids: readonly string[]): Promise<void>;
}

/** Which runs are in memory: those that are ready and those that are due, as places become free. */
export interface TakingUp {
  readonly active: ReadonlyMap<string, ActiveRun>;
  /** Being read; the promise settles once they are in `active` or gone. */
  readonly opening: ReadonlyMap<string, Promise<void>>;
  /** A run became ready, or is planned. `fresh`: nothing but its row is stored. */
  offer(run: RunRecord, fresh: boolean): void;
  /** Something of a run that is not in memory was stored: it must be read anew when its turn comes. */
  stale(runId: string): void;
  /** Reads which tenants have something ready. */
  refresh(): Promise<void>;
  /** Takes up what is due, then what is ready; answers when to look again. */
  look(now: number): Promise<number | null>;
}

export function createTakingUp(deps: TakingUpDeps): TakingUp {
  const { store, clock, random, logger, limits, hooks, isWorking, ended } = deps;
  const active = new Map<string, ActiveRun>();
  const opening = new Map<string, Promise<void>>();
  /** Of the runs in memory: each in `opening` or `active` holds a place of its tenant. */
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

  /** Takes up ready runs while their tenants may have more: those in memory at once, others as they are read. */
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
        // A page may hold none but runs that were just taken up: they leave it once their claims are written.
        await nextTurn();
      }
    } catch (error) {
      logger.error('Queued runs could not be read; tried again in a second', { error });
    } finally {
      pumping = false;
    }
  }

  /** False when the tenant has no place for it. */
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

  /** Reads a run and goes on with it. False when it is not to be gone on with now. */
  async function tryOpen(run: RunRecord): Promise<boolean> {
    const { seq, id } = run;
    try {
      const loaded = await store.runs.load(seq);
      // Claimed, cancelled or finished since it was put into the queue.
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

  /** A definition that is gone, or that this version cannot compile any more, fails its run: trying again would not help. */
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

  /** The store finds what is due by the wall clock; after a step back it would find a short wait too late. */
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

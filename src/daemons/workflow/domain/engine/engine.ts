import { seconds } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import { createFairShares } from '../../../../kit/fair-shares.ts';
import type { InboxRecord, LoadedRun, RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { type ActiveRun, createActiveRun } from '../run/active-run.ts';
import { isFinal } from '../states.ts';
import { keepLease } from './boot-lease.ts';
import { createCancelling } from './cancelling.ts';
import { createDueRuns } from './due-runs.ts';
import type { Engine, EngineDeps, JobCounts } from './engine-ports.ts';
import { failedByDefinition } from './failed-by-definition.ts';
import { createReadyQueue, type ReadyRun } from './ready-queue.ts';
import { recover } from './recovery.ts';
import { createFairSlots } from './slots.ts';
import { createTicker } from './ticker.ts';

/** Signals of one run that no step has taken: all of them are read whenever the run is taken up. */
const MOST_UNREAD = 1000;

export function createEngine(deps: EngineDeps): Engine {
  const { store, clock, random, logger, limits, hooks } = deps;
  const active = new Map<string, ActiveRun>();
  /** Being read; the promise settles once they are in `active` or gone. */
  const opening = new Map<string, Promise<void>>();
  /** Of the runs in memory: each in `opening` or `active` holds a place of its tenant. */
  const places = createFairShares(limits.runs);
  const ready = createReadyQueue(store.queue, places.mayTake);
  const due = createDueRuns({
    queue: store.queue,
    places,
    takeUp: (run) => takeUp({ run, fresh: false }),
    offer: (run) => offer(run, false),
  });
  const slots = createFairSlots(limits.steps);
  const lookers: Array<(now: number) => Promise<number | null>> = [];
  const ticker = createTicker({ clock, logger, look });
  // What they start may wait for a process of a plugin; the waits of runs must not.
  const plans = createTicker({ clock, logger, look: lookBeside });
  const { cancel, cancelChild, cancelChildren } = createCancelling({
    ...{ store, clock, logger, active, opening, offer, ended },
    changed: hooks.changed,
  });
  let fence = 0;
  let working = false;
  let pumping = false;
  let stopRenewing: () => void = () => {};

  // ---- taking up ----------------------------------------------------------------------------------------------------

  /** Takes up ready runs while their tenants may have more: those in memory at once, others as they are read. */
  function pump(): void {
    while (working) {
      const next = ready.next();
      if (!next) break;
      takeUp(next);
    }
    if (working && ready.isBehind && !pumping) void pumpFromStore();
  }

  async function pumpFromStore(): Promise<void> {
    pumping = true;
    try {
      while (working && ready.isBehind) {
        await ready.read();
        pump();
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
    const workflow = fresh ? deps.definitionHere(run.definitionHash) : undefined;
    if (workflow) activate({ run: { ...run }, jobs: [], steps: [], inbox: [] }, workflow);
    else opening.set(run.id, open(run));
    return true;
  }

  async function open(run: RunRecord): Promise<void> {
    const activated = await tryOpen(run);
    opening.delete(run.id);
    if (!activated) leavePlace(run.tenantId);
  }

  /** Reads a run and goes on with it. False when it is not to be gone on with now. */
  async function tryOpen(run: RunRecord): Promise<boolean> {
    const { seq, id } = run;
    try {
      const loaded = await store.runs.load(seq);
      // Claimed, cancelled or finished since it was put into the queue.
      if (!loaded || loaded.run.fence !== null || !['queued', 'waiting'].includes(loaded.run.status))
        return false;
      if (loaded.run.status === 'queued' && !loaded.run.ready) return false;
      const workflow = await definitionFor(loaded.run);
      if (!workflow || !working) return false;
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
    else void ticker.tick();
  }

  /** A definition that is gone, or that this version cannot compile any more, fails its run: trying again would not help. */
  async function definitionFor(run: RunRecord): Promise<CompiledWorkflow | undefined> {
    try {
      return await deps.definitionOf(run.definitionHash);
    } catch (thrown) {
      if (!(thrown instanceof PlatformError) || thrown.code === 'STORE_ERROR') throw thrown;
      const { write, failed } = failedByDefinition(run, thrown, clock.now());
      const { applied, promoted } = await store.runs.write(write);
      if (!applied) return undefined;
      hooks.changed(run.id);
      for (const next of promoted) offer(next, false);
      ended(failed);
      void cancelChildren(run.id);
      return undefined;
    }
  }

  function activate(loaded: LoadedRun, workflow: CompiledWorkflow): void {
    const { id } = loaded.run;
    const one = createActiveRun(loaded, workflow, fence, {
      store: store.runs,
      clock,
      random,
      logger,
      slots,
      mostOutput: limits.mostOutput,
      tracer: deps.tracer,
      passes: deps.passes,
      jobStarted: hooks.jobStarted,
      jobEnded: hooks.jobEnded,
      childEnd,
      cancelChild: (runId) => void cancelChild(runId),
      written(run, { promoted }) {
        hooks.changed(run.id);
        for (const next of promoted) offer(next, false);
      },
    });
    active.set(id, one);
    void one.left.then((departure) => {
      active.delete(id);
      if (departure === 'ended') ended(one.run, one.jobs());
      if (departure === 'parked') {
        if (one.wasPokedLate) void wake(id);
        else if (one.run.wakeAt !== null) ticker.notice(one.run.wakeAt);
      }
      leavePlace(one.run.tenantId);
    });
  }

  function ended(run: RunRecord, jobs?: JobCounts): void {
    hooks.ended(run, jobs);
    if (run.parentId !== null) void poke(run.parentId);
  }

  function offer(run: RunRecord, fresh: boolean): void {
    if (!working) return;
    if (run.ready) {
      ready.offer({ run, fresh });
      pump();
    } else if (run.wakeAt !== null) ticker.notice(run.wakeAt);
  }

  // ---- waking -------------------------------------------------------------------------------------------------------

  /** What has fallen due; answers when the next does. */
  async function look(): Promise<number | null> {
    if (!working) return null;
    const next = await due.look(clock.now());
    pump();
    return next;
  }

  async function lookBeside(): Promise<number | null> {
    if (!working) return null;
    const times = (await Promise.all(lookers.map((wanted) => wanted(clock.now())))).filter(
      (time) => time !== null,
    );
    return times.length === 0 ? null : Math.min(...times);
  }

  async function poke(id: string, entry?: InboxRecord): Promise<void> {
    const one = active.get(id);
    if (one) one.poke(entry);
    else {
      ready.stale(id);
      await wake(id);
    }
  }

  async function wake(id: string): Promise<void> {
    try {
      // It may be on its way into memory, having been read before what came.
      await opening.get(id);
      const one = active.get(id);
      if (one) return one.poke();
      await store.queue.wake(id, clock.now());
      await ticker.tick();
    } catch (error) {
      logger.error(`Run ${id} could not be woken; it will be looked at when it is due`, { error });
    }
  }

  async function childEnd(runId: string): Promise<RunRecord | undefined> {
    const child = await store.runs.find(null, runId);
    return child && isFinal(child.status) ? child : undefined;
  }

  function lost(): void {
    if (!working) return;
    working = false;
    for (const one of active.values()) one.abandon();
    logger.diagnostic({
      domain: 'workflow',
      event: 'engine.fenced',
      level: 'fatal',
      reasonCode: 'LEASE_LOST',
      message: 'Another workflow service took over while this one stood still; it stops',
      outcome: 'failed',
      evidence: { fence },
    });
    hooks.fenced();
  }

  return {
    async start() {
      fence = await store.boots.begin({
        bootId: random.uuid(),
        pid: process.pid,
        now: clock.now(),
        leaseMs: limits.leaseMs,
        exclusive: deps.exclusive,
      });
      await recover(deps);
      await ready.refresh();
      working = true;
      stopRenewing = keepLease(deps, fence, lost);
      // Their parents ended with a process that had no time left for them.
      for (const child of await store.boots.leftChildren()) await cancelChild(child);
      await ticker.tick();
      void plans.tick();
    },
    offer,
    cancel,
    async deliver(run, entry, options) {
      const delivered = await store.runs.deliver(run.seq, entry, { ...options, most: MOST_UNREAD });
      if (delivered.outcome !== 'delivered') throw undelivered(delivered.outcome, run, entry.name);
      hooks.changed(run.id);
      await poke(run.id, { ...entry, n: delivered.n, takenBy: null });
    },
    async tick() {
      await ticker.tick();
      await plans.tick();
    },
    onTick: (wanted) => lookers.push(wanted),
    async stop(drainMs) {
      working = false;
      stopRenewing();
      await Promise.all([ticker.stop(), plans.stop()]);
      await Promise.all(opening.values());
      const open = [...active.values()];
      for (const one of open) one.drain();
      if (open.length > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        // Real time even under a hand-moved clock: it waits for processes, not for a moment.
        const giveUp = setTimeout(resolve, drainMs);
        await Promise.race([Promise.all(open.map(({ left }) => left)), promise]);
        clearTimeout(giveUp);
      }
      for (const one of active.values()) one.abandon();
      if (fence > 0) await store.boots.end(fence, clock.now());
    },
    get activeRuns() {
      return active.size;
    },
  };
}

function undelivered(outcome: 'ended' | 'taken' | 'full', { id }: RunRecord, name: string): PlatformError {
  const why = {
    ended: `Run ${id} has ended; nothing can be sent to it any more.`,
    taken: `This was decided before for step ${name} of run ${id}.`,
    full: `${MOST_UNREAD} signals wait in run ${id} that no step of it has taken; it takes no more until one does.`,
  };
  return new PlatformError('CONFLICT', why[outcome], { details: { runId: id } });
}

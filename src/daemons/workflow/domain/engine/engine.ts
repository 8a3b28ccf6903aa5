import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { RunNews } from '../run/active-run.ts';
import { keepLease } from './boot-lease.ts';
import { createCancelling } from './cancelling.ts';
import type { Engine, EngineDeps, JobCounts } from './engine-ports.ts';
import { recover } from './recovery.ts';
import { createTakingUp } from './taking-up.ts';
import { createTicker } from './ticker.ts';

/** Maximum unread signals of a run: all of them are read on each claim. */
const MOST_UNREAD = 1000;
const MOST_UNREAD_MB = 16;

export function createEngine(deps: EngineDeps): Engine {
  const { store, clock, random, logger, limits, hooks } = deps;
  const lookers: Array<(now: number) => Promise<number | null>> = [];
  let fence = 0;
  let startedAt = 0;
  let working = false;
  /** Ended children by parent id, collected within one event-loop turn. */
  const endedChildren = new Map<string, Set<string>>();
  let stopRenewing: () => void = () => {};
  const ticker = createTicker({ clock, logger, look });
  // A separate ticker: starts may wait for a plugin's process, which must not delay due runs.
  const plans = createTicker({ clock, logger, look: lookBeside });
  const taking = createTakingUp({
    ...deps,
    fence: () => fence,
    startedAt: () => startedAt,
    isWorking: () => working,
    ended,
    wake,
    notice: ticker.notice,
    lookAgain: () => void ticker.tick(),
    cancelById: (id) => cancelById(id),
    cancelChildren: (id) => cancelChildren(id),
    supersede: (ids) => supersede(ids),
  });
  const { active, opening, offer } = taking;
  const { cancel, cancelById, cancelChildren, supersede } = createCancelling({
    ...{ store, clock, logger, active, opening, offer, ended },
    changed: hooks.changed,
    definitionOf: deps.definitionOf,
    lookAgain: () => void ticker.tick(),
    isWorking: () => working,
  });

  function ended(run: RunRecord, jobs?: JobCounts): void {
    hooks.ended(run, jobs);
    deps.pluginWaits.remove(run.id);
    if (run.parentId !== null) wakeParent(run.parentId, run.id);
  }

  /** Batches children that end in one event-loop turn, so that their parent wakes once. */
  function wakeParent(id: string, child: string): void {
    if (endedChildren.size === 0)
      setImmediate(() => {
        const ofParents = [...endedChildren];
        endedChildren.clear();
        for (const [parent, children] of ofParents) void poke(parent, { endedChildren: children });
      });
    endedChildren.set(id, (endedChildren.get(id) ?? new Set()).add(child));
  }

  /** Processes due runs. Returns the next due time. */
  async function look(): Promise<number | null> {
    return working ? taking.look(clock.now()) : null;
  }

  async function lookBeside(): Promise<number | null> {
    if (!working) return null;
    const times = (await Promise.all(lookers.map((wanted) => wanted(clock.now())))).filter(
      (time) => time !== null,
    );
    return times.length === 0 ? null : Math.min(...times);
  }

  async function poke(id: string, news: RunNews): Promise<void> {
    const one = active.get(id);
    if (one) one.poke(news);
    else {
      taking.stale(id);
      await wake(id, news);
    }
  }

  async function wake(id: string, news?: RunNews): Promise<void> {
    try {
      // The run may be loading from a state older than the news.
      await opening.get(id);
      const one = active.get(id);
      if (one) return one.poke(news);
      await store.queue.wake(id, clock.now());
      await ticker.tick();
    } catch (error) {
      logger.error(`Run ${id} could not be woken; it will be looked at when it is due`, { error });
    }
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
      startedAt = clock.now();
      const aliveAt = (await store.boots.lastAlive(limits.leaseMs)) ?? startedAt;
      fence = await store.boots.begin({
        bootId: random.uuid(),
        pid: process.pid,
        now: clock.now(),
        leaseMs: limits.leaseMs,
        exclusive: deps.exclusive,
        hadFault: deps.hadFault,
        oomKills: deps.oomKills(),
      });
      await recover(deps);
      await store.queue.wakeForPlugins(clock.now());
      // Due before this boot, so each evaluation is marked in flight first and a crash in it counts.
      await store.boots.resumeCleanUps({ aliveAt, now: clock.now(), wakeAt: startedAt - 1 });
      await taking.refresh();
      working = true;
      stopRenewing = keepLease(deps, fence, lost);
      // The previous process ended before it could cancel these.
      for (const run of await store.boots.leftToCancel()) await cancelById(run);
      setImmediate(() => {
        void ticker.tick();
        void plans.tick();
      });
    },
    offer,
    cancel,
    supersede,
    async deliver(run, entry, options) {
      const delivered = await store.runs.deliver(run.seq, entry, {
        ...options,
        most: MOST_UNREAD,
        mostBytes: MOST_UNREAD_MB * 1024 * 1024,
      });
      if (delivered.outcome === 'repeated') return;
      if (delivered.outcome !== 'delivered') throw undelivered(delivered.outcome, run, entry.name);
      hooks.changed(run.id);
      await poke(run.id, { entry: { ...entry, n: delivered.n, takenBy: null } });
    },
    async pluginsChanged() {
      if (!working) return;
      for (const one of active.values()) one.pluginsChanged();
      await store.queue.wakeForPlugins(clock.now());
      void ticker.tick();
    },
    async tick() {
      await ticker.tick();
      await plans.tick();
    },
    onTick: (wanted) => lookers.push(wanted),
    async stop(drainMs) {
      working = false;
      stopRenewing();
      // Recorded first: a supervisor may kill this process during the drain, which must not count as a crash.
      if (fence > 0) await store.boots.stopping(fence);
      await Promise.all([ticker.stop(), plans.stop()]);
      await Promise.all(opening.values());
      const open = [...active.values()];
      for (const one of open) one.drain();
      if (open.length > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        // Uses real time even under a test clock, because it waits for processes.
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

function undelivered(
  outcome: 'ended' | 'taken' | 'full' | 'different',
  { id }: RunRecord,
  name: string,
): PlatformError {
  const why = {
    different: `This idempotency key was used for another signal to run ${id}; take a new key.`,
    ended: `Run ${id} has ended; nothing can be sent to it any more.`,
    taken: `This was decided before for step ${name} of run ${id}.`,
    full: `Run ${id} holds ${MOST_UNREAD} signals, or ${MOST_UNREAD_MB} MB of them, that no step has taken; it takes no more until one does.`,
  };
  return new PlatformError('CONFLICT', why[outcome], { details: { runId: id } });
}

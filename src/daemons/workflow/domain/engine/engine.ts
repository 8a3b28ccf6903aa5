import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { InboxRecord, RunRecord } from '../../../../store/ports/index.ts';
import type { ChildRequest } from '../starts/child-runs.ts';
import type { Admitted } from '../starts/run-admission.ts';
import type { RunNews } from './active-run.ts';
import { keepLease } from './boot-lease.ts';
import { Cancelling } from './cancelling.ts';
import { Claims } from './claims.ts';
import { OwnerNotices } from './owner-notices.ts';
import { Pausing } from './pausing.ts';
import type { CancelResult, Engine, EngineDeps, EngineHost, JobCounts } from './ports.ts';
import { recover } from './recovery.ts';
import { Sweeper } from './sweeper.ts';
import { Ticker } from './ticker.ts';

/** Maximum number of unread signals of a run. Each claim of a run reads all its unread signals. */
const MAX_UNREAD = 1000;
const MAX_UNREAD_MB = 16;

type Look = (now: number) => Promise<number | null>;

/**
 * Claims, advances and wakes runs, and recovers the runs of a crashed service process. @spec Workflow daemon; Workflow
 * run
 */
export class WorkflowEngine implements Engine, EngineHost {
  readonly pausing: Pausing;
  readonly #deps: EngineDeps;
  readonly #ticker: Ticker;
  /**
   * Ticker of the `onTick` callbacks. A callback can wait for a plugin process, so a separate ticker prevents delays of
   * due runs.
   */
  readonly #plans: Ticker;
  readonly #claims: Claims;
  readonly #cancelling: Cancelling;
  readonly #notices: OwnerNotices;
  readonly #sweeper: Sweeper | undefined;
  readonly #looks: Look[] = [];
  /** Ended child runs by parent id, collected during one event loop turn. */
  readonly #endedChildren = new Map<string, Set<string>>();
  #stopRenewing: () => void = () => {};
  #fence = 0;
  #startedAt = 0;
  #isWorking = false;

  constructor(deps: EngineDeps) {
    const { clock, logger, store, hooks, definitionOf, cluster } = deps;
    this.#deps = deps;
    this.#ticker = new Ticker({ clock, logger, subject: 'Due runs', look: () => this.#lookAtRuns() });
    this.#plans = new Ticker({ clock, logger, subject: 'Due schedules', look: () => this.#lookAtPlans() });
    this.#claims = new Claims(deps, this);
    const { active, opening } = this.#claims;
    this.#notices = new OwnerNotices({ cluster, clock, logger, active, host: this });
    this.#sweeper = cluster && new Sweeper(deps, cluster, this);
    this.pausing = new Pausing({ ...deps, claims: this.#claims, notices: this.#notices, host: this });
    this.#cancelling = new Cancelling({
      ...{ store, clock, logger, active, opening, definitionOf },
      owners: cluster && { store: cluster.store, notify: (owner) => this.#notices.notify(owner) },
      changed: hooks.changed,
      host: this,
    });
  }

  get fence(): number {
    return this.#fence;
  }

  get startedAt(): number {
    return this.#startedAt;
  }

  get isWorking(): boolean {
    return this.#isWorking;
  }

  get activeRuns(): number {
    return this.#claims.active.size;
  }

  async start(): Promise<void> {
    const { store, clock, random, limits, cluster } = this.#deps;
    this.#startedAt = clock.now();
    const aliveAt = (await store.boots.lastAlive(limits.leaseMs)) ?? this.#startedAt;
    this.#fence = await store.boots.begin({
      bootId: random.uuid(),
      pid: process.pid,
      now: clock.now(),
      leaseMs: limits.leaseMs,
      exclusive: this.#deps.exclusive,
      member: this.#deps.cluster?.member,
      hadFault: this.#deps.hadFault,
      oomKills: this.#deps.oomKills(),
    });
    await recover(this.#deps);
    await store.queue.wakeForPlugins(clock.now());
    // With a `wakeAt` before this start, the runs count as ready before the start. Evaluations of such runs are durably
    // marked as in flight, so that a crash is attributed to its run.
    if (!(await cluster?.hasOthers()))
      await store.boots.resumeCleanUps({ aliveAt, now: clock.now(), wakeAt: this.#startedAt - 1 });
    await this.#claims.refresh();
    this.#isWorking = true;
    this.#stopRenewing = keepLease(this.#deps, this.#fence, () => this.#lost());
    cluster?.onLost(() => this.#lost());
    this.#sweeper?.start();
    // The previous service process ended before it could cancel these runs.
    for (const run of await store.boots.leftToCancel()) await this.cancelById(run);
    setImmediate(() => {
      this.requestTick();
      void this.#plans.tick();
    });
  }

  offer(run: RunRecord, fresh: boolean): void {
    this.#claims.offer(run, fresh);
  }

  cancel(run: RunRecord): Promise<CancelResult> {
    return this.#cancelling.cancel(run);
  }

  cancelById(id: string): Promise<boolean> {
    return this.#cancelling.cancelById(id);
  }

  cancelChildren(id: string): Promise<void> {
    return this.#cancelling.cancelChildren(id);
  }

  supersede(ids: readonly string[]): Promise<void> {
    return this.#cancelling.supersede(ids);
  }

  async schedule({ run, isNew, fresh, supersedes }: Admitted): Promise<void> {
    if (!isNew) return;
    this.offer(run, fresh);
    await this.supersede(supersedes);
  }

  async startChild(request: ChildRequest): Promise<string> {
    const admitted = await this.#deps.admitChild(request);
    await this.schedule(admitted);
    return admitted.run.id;
  }

  async deliver(
    run: RunRecord,
    entry: Omit<InboxRecord, 'n' | 'takenBy'>,
    options: { once: boolean; repeat?: { key: string; digest: string } | undefined },
  ): Promise<void> {
    const { store, hooks } = this.#deps;
    const limits = { most: MAX_UNREAD, mostBytes: MAX_UNREAD_MB * 1024 * 1024, by: this.#fence };
    const delivered = await store.runs.deliver(run.seq, entry, { ...options, ...limits });
    if (delivered.outcome === 'repeated') return;
    if (delivered.outcome !== 'delivered') throw undelivered(delivered.outcome, run, entry.name);
    hooks.changed(run.id);
    const { n, owner } = delivered;
    if (owner !== undefined && owner !== this.#fence) await this.#notices.notify(owner);
    else await this.#poke(run.id, { entry: { ...entry, n, takenBy: null } });
  }

  readNotices(): Promise<void> {
    return this.#notices.read();
  }

  async pluginsChanged(): Promise<void> {
    if (!this.#isWorking) return;
    for (const one of this.#claims.active.values()) one.pluginsChanged();
    await this.#deps.store.queue.wakeForPlugins(this.#deps.clock.now());
    this.requestTick();
  }

  async tick(): Promise<void> {
    await this.#ticker.tick();
    await this.#plans.tick();
  }

  onTick(look: Look): void {
    this.#looks.push(look);
  }

  notice(at: number): void {
    this.#ticker.notice(at);
  }

  requestTick(): void {
    void this.#ticker.tick();
  }

  ended(run: RunRecord, jobs?: JobCounts): void {
    this.#deps.hooks.ended(run, jobs);
    this.#deps.pluginWaits.remove(run.id);
    if (run.parentId !== null) this.#wakeParent(run.parentId, run.id);
  }

  async wake(id: string, news?: RunNews): Promise<void> {
    const { active, opening } = this.#claims;
    try {
      // A run that is being loaded might have been read before this change. The change is therefore delivered after the
      // load.
      await opening.get(id);
      const one = active.get(id);
      if (one) return one.poke(news);
      const owner = await this.#deps.store.queue.wake(id, this.#deps.clock.now());
      await (owner === null ? this.#ticker.tick() : this.#notices.notify(owner));
    } catch (error) {
      const message = `Run ${id} could not be woken; it continues when it is next due`;
      this.#deps.logger.error(message, { error });
    }
  }

  async stop(drainMs: number): Promise<void> {
    const { store, clock } = this.#deps;
    const { active, opening } = this.#claims;
    this.#isWorking = false;
    this.#stopRenewing();
    // The stop is recorded before the drain. Otherwise, a kill by a supervisor during the drain would count as a crash.
    if (this.#fence > 0) await store.boots.stopping(this.#fence);
    await Promise.all([this.#ticker.stop(), this.#plans.stop(), this.#sweeper?.stop()]);
    const stopReading = this.#notices.keepReading();
    await Promise.all(opening.values());
    const open = [...active.values()];
    for (const one of open) one.drain();
    if (open.length > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      // This timer uses wall-clock time even with a test clock, because processes of in-flight work ignore the test
      // clock.
      const giveUp = setTimeout(resolve, drainMs);
      await Promise.race([Promise.all(open.map(({ left }) => left)), promise]);
      clearTimeout(giveUp);
    }
    for (const one of active.values()) one.abandon();
    await stopReading();
    if (this.#fence > 0) await store.boots.end(this.#fence, clock.now());
  }

  /** Claims due runs. Returns the time at which the next run is due. */
  async #lookAtRuns(): Promise<number | null> {
    if (!this.#isWorking) return null;
    void this.#notices.read();
    return this.#claims.look(this.#deps.clock.now());
  }

  async #lookAtPlans(): Promise<number | null> {
    if (!this.#isWorking) return null;
    const times = await Promise.all(this.#looks.map((look) => look(this.#deps.clock.now())));
    const next = Math.min(...times.filter((time) => time !== null));
    return Number.isFinite(next) ? next : null;
  }

  /** Collects children that end in the same event-loop turn, so that their parent run wakes only once. */
  #wakeParent(id: string, child: string): void {
    if (this.#endedChildren.size === 0)
      setImmediate(() => {
        const ofParents = [...this.#endedChildren];
        this.#endedChildren.clear();
        for (const [parent, children] of ofParents) void this.#poke(parent, { endedChildren: children });
      });
    this.#endedChildren.set(id, (this.#endedChildren.get(id) ?? new Set()).add(child));
  }

  async #poke(id: string, news: RunNews): Promise<void> {
    const one = this.#claims.active.get(id);
    if (one) one.poke(news);
    else {
      this.#claims.stale(id);
      await this.wake(id, news);
    }
  }

  #lost(): void {
    if (!this.#isWorking) return;
    this.#isWorking = false;
    for (const one of this.#claims.active.values()) one.abandon();
    this.#deps.logger.diagnostic({
      domain: 'workflow',
      event: 'engine.fenced',
      level: 'fatal',
      reasonCode: 'LEASE_LOST',
      message: 'Another workflow service fenced this one after its lease expired; this service stops',
      outcome: 'failed',
      evidence: { fence: this.#fence },
    });
    this.#deps.hooks.fenced();
  }
}

function undelivered(
  outcome: 'ended' | 'taken' | 'full' | 'different',
  { id }: RunRecord,
  name: string,
): PlatformError {
  const why = {
    different: `This idempotency key was used for another signal to run ${id}; take a new key.`,
    ended: `Run ${id} has ended; it accepts no further signals, approvals or decisions.`,
    taken: `Step ${name} of run ${id} already has a decision.`,
    full: `Run ${id} holds ${MAX_UNREAD} signals, or ${MAX_UNREAD_MB} MB of them, that no step has taken; it takes no more until one does.`,
  };
  return new PlatformError('CONFLICT', why[outcome], { details: { runId: id } });
}

import type { InboxRecord, RunRecord } from '../../../../store/ports/index.ts';
import { type EffectDeps, EffectRunners } from '../effects/effect-runners.ts';
import type { Effect } from '../run/effects.ts';
import type { RunEvent } from '../run/events.ts';
import { jobsOf, newRunState, type RunClaim, type RunState } from '../run/state.ts';
import { BEGUN_FLUSH_MS } from '../steps/step-kind.ts';
import { FAILED_STATES } from '../transition/results.ts';
import { transition } from '../transition/transition.ts';
import type { Lease } from './ports.ts';
import { RunWriter, type RunWriterDeps } from './run-writer.ts';
import { WriteBuffer } from './write-buffer.ts';

/**
 * Reason why a run left memory. A `parked` run is waiting and exists only in the store. A `lost` run is owned by
 * another process of the workflow service.
 */
export type Departure = 'ended' | 'parked' | 'lost' | 'abandoned';

/** Changes that other components report to a run: a new inbox entry, or the ids of ended child runs. */
export interface RunNews {
  entry?: InboxRecord;
  endedChildren?: Iterable<string>;
}

export interface ActiveRunDeps extends EffectDeps, RunWriterDeps {
  /** Undefined if no other process can take over the run. */
  lease?: Lease | undefined;
  jobStarted(): void;
  jobEnded(): void;
}

const LEASE_CHECK_MS = 100;

/**
 * Events whose writes can be delayed. One write can then cover the begin event and the end event of a short attempt.
 */
const LAZY_EVENTS: ReadonlySet<RunEvent['type']> = new Set(['attempt.begun', 'replay.begun']);

/**
 * A run that is loaded in memory. The run leaves memory when the run ends or has no work in flight. Events change the
 * state immediately. The writes of several events are persisted together before effects start.
 */
export class ActiveRun {
  readonly run: RunRecord;
  readonly left: Promise<Departure>;
  readonly #state: RunState;
  readonly #claim: RunClaim;
  readonly #deps: ActiveRunDeps;
  readonly #writer: RunWriter;
  readonly #effects: EffectRunners;
  readonly #buffer = new WriteBuffer();
  readonly #gone = Promise.withResolvers<Departure>();
  /** Effects of events that are not persisted yet. */
  #pending: Effect[] = [];
  /** Resolves to true once the buffered writes are durable. Resolves to false if another process owns the run. */
  #durable: PromiseWithResolvers<boolean> | null = null;
  #isCommitting = false;
  #isAdvanceDue = false;
  #stopFlush: (() => void) | null = null;
  #departure: Departure | null = null;
  #missedNews = false;
  #countedJobs = 0;
  #wakesInMs = Number.POSITIVE_INFINITY;

  constructor(claim: RunClaim, deps: ActiveRunDeps) {
    const { run } = claim.loaded;
    this.run = run;
    this.left = this.#gone.promise;
    this.#claim = claim;
    this.#deps = deps;
    this.#state = newRunState(claim);
    this.#writer = new RunWriter(run, deps);
    this.#effects = new EffectRunners({
      ...deps,
      ...{ run, program: claim.program, isFromBefore: claim.isFromBefore },
      dispatch: (event) => this.#dispatch(event),
    });
    this.#dispatch({ type: 'claimed' });
  }

  /**
   * Returns whether an event was dropped because the run was leaving memory. The engine must then wake the run again.
   */
  get missedNews(): boolean {
    return this.#missedNews;
  }

  /**
   * Time until the next wake-up of a waiting run that was unloaded from memory, in ms. Infinity if no wake-up is
   * planned.
   */
  get wakesInMs(): number {
    return this.#wakesInMs;
  }

  /**
   * Maps each wall-clock deadline to the same moment on the monotonic clock. The next claim of the run reuses the map.
   */
  get deadlines(): ReadonlyMap<number, number> {
    return this.#state.deadlines;
  }

  jobs(): { total: number; failed: number } {
    const jobs = jobsOf(this.#state);
    const failed = jobs.filter(({ record }) => FAILED_STATES.has(record.status));
    return { total: jobs.length, failed: failed.length };
  }

  /** Delivers a new inbox entry or ended child runs, if any, and advances the run. */
  poke({ entry, endedChildren = [] }: RunNews = {}): void {
    this.#dispatch({ type: 'news', entry: entry ?? null, endedChildren: [...endedChildren] });
  }

  /** Retries all work that waits for a plugin. Called after a plugin reload. */
  pluginsChanged(): void {
    this.#dispatch({ type: 'plugins.changed' });
  }

  /**
   * Cancels the run. Resolves to true once the cancellation is durable. Resolves to false if the run cannot be
   * cancelled in memory, for example because the run has ended.
   */
  async cancel(): Promise<boolean> {
    if (this.#departure || this.#state.phase !== 'active' || this.run.status === 'cancelling') return false;
    this.#durable ??= Promise.withResolvers();
    const { promise } = this.#durable;
    this.#dispatch({ type: 'cancel' });
    return promise;
  }

  /** Removes the run from memory, aborts its in-flight work and writes nothing more. */
  abandon(): void {
    if (!this.#departure) this.#quit('abandoned');
  }

  /**
   * Starts no new work. Removes the run from memory when the in-flight work has settled. The next process of the
   * workflow service resumes the run.
   */
  drain(): void {
    this.#dispatch({ type: 'drain' });
  }

  /** Drains a run that was paused, or lets it start work again. Must not be called while the service stops. */
  setPaused(isPaused: boolean): void {
    if (this.#state.draining !== isPaused) this.#dispatch({ type: isPaused ? 'drain' : 'undrain' });
  }

  #dispatch(event: RunEvent): void {
    if (this.#departure || this.#state.phase !== 'active') {
      this.#missedNews = true;
      return;
    }
    const { clock, random, evaluator } = this.#deps;
    const stamp = {
      now: clock.now(),
      monotonic: clock.monotonic(),
      fraction: random.fraction(),
      units: evaluator.unitsLeft(),
      slots: this.#effects.slots.available,
    };
    const { program } = this.#claim;
    const { writes, effects, slots, units } = transition(this.#state, { ...event, ...stamp }, program);
    for (const owner of slots) this.#effects.slots.take(owner);
    evaluator.spend(units);
    this.#countJobs(this.#state.runningJobs);
    this.#buffer.add(writes);
    this.#pending.push(...effects);
    // The advance writes too, so one write covers the end of a step and the begin of the next step.
    if (this.#state.isStale) this.#advanceSoon();
    else if (LAZY_EVENTS.has(event.type) && effects.length === 0) this.#commitLater();
    else void this.#commit();
  }

  /** Advances the run once for all steps that settle in the same event loop turn. */
  #advanceSoon(): void {
    if (this.#isAdvanceDue) return;
    this.#isAdvanceDue = true;
    queueMicrotask(() => {
      this.#isAdvanceDue = false;
      if (this.#state.isStale) this.#dispatch({ type: 'advance' });
    });
  }

  #commitLater(): void {
    this.#stopFlush ??= this.#deps.clock.after(BEGUN_FLUSH_MS, () => {
      this.#stopFlush = null;
      void this.#commit();
    });
  }

  async #commit(): Promise<void> {
    if (this.#isCommitting) return;
    this.#isCommitting = true;
    while (!this.#departure && (!this.#buffer.isEmpty || this.#pending.length > 0)) {
      const effects = this.#pending;
      this.#pending = [];
      if (!this.#buffer.isEmpty && !(await this.#persist())) {
        if (!this.#departure) this.#quit('lost');
        break;
      }
      if (this.#deps.lease?.isHeld === false) await this.#untilLeaseHeld(this.#deps.lease);
      for (const effect of effects) this.#start(effect);
    }
    this.#isCommitting = false;
  }

  /** Delays effects, because another process may execute them already. If it does, this run is soon abandoned. */
  async #untilLeaseHeld(lease: Lease): Promise<void> {
    while (!this.#departure && !lease.isHeld)
      await new Promise<void>((resolve) => this.#deps.clock.after(LEASE_CHECK_MS, resolve));
  }

  async #persist(): Promise<boolean> {
    this.#stopFlush?.();
    this.#stopFlush = null;
    const durable = this.#durable;
    this.#durable = null;
    const isDurable = await this.#writer.persist(
      this.#buffer.collect(),
      Math.max(0, ...this.#state.seenEntries),
    );
    durable?.resolve(isDurable);
    return isDurable;
  }

  #start(effect: Effect): void {
    if (this.#departure) return;
    if (effect.type === 'leave') {
      this.#wakesInMs = effect.wakesInMs;
      this.#leave(effect.how);
    } else this.#effects.start(effect);
  }

  #quit(how: 'lost' | 'abandoned'): void {
    this.#writer.stop();
    this.#leave(how);
    this.#effects.abortAll();
  }

  #leave(how: Departure): void {
    this.#departure = how;
    this.#stopFlush?.();
    this.#durable?.resolve(false);
    this.#effects.close();
    this.#countJobs(0);
    this.#gone.resolve(how);
  }

  #countJobs(running: number): void {
    for (; this.#countedJobs < running; this.#countedJobs++) this.#deps.jobStarted();
    for (; this.#countedJobs > running; this.#countedJobs--) this.#deps.jobEnded();
  }
}

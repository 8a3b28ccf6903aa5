import { setTimeout as pause } from 'node:timers/promises';
import { type Death, type Mortal, underDeaths } from '../daemons/workflow/support/deaths.ts';
import type { Ledger } from '../daemons/workflow/support/ledger.ts';
import type { RetryingClient } from '../daemons/workflow/support/retrying-client.ts';
import { type Random, shuffled } from '../support/random.ts';
import { faultsOf, type Started } from './judge.ts';
import { type Kind, kindOf } from './kinds/kinds.ts';
import { readRuns } from './read-runs.ts';
import { Ticks } from './ticks.ts';

const CANCELLED_SHARE = 0.15;
const PLANNED_SHARE = 0.15;
const LONGEST_PAUSE_MS = 2000;

export interface ChaosOptions {
  random: Random;
  ledger: Ledger;
}

/** What one run is to live through; drawn beforehand, so that a seed decides it. */
interface Fate {
  place: number;
  kind: Kind;
  startsInMs: number;
  /** From its start until it may begin. */
  plannedMs: number | null;
  signalledInMs: number;
  cancelledInMs: number | null;
}

/** Starts runs of every kind, signals and cancels them at random while what runs them dies again and again. */
export class Chaos<Way extends string> {
  readonly #mortal: Mortal<Way> & { client: RetryingClient };
  readonly #random: Random;
  readonly #ledger: Ledger;
  readonly #started: Started[] = [];
  readonly #faults: string[] = [];
  #places = 0;

  constructor(mortal: Mortal<Way> & { client: RetryingClient }, { random, ledger }: ChaosOptions) {
    this.#mortal = mortal;
    this.#random = random;
    this.#ledger = ledger;
  }

  /** So many runs, spread over the lives between these deaths; resolves once all have ended. */
  async wave(runs: number, deaths: readonly Death<Way>[]): Promise<void> {
    const { client } = this.#mortal;
    const ticks = await Ticks.resume(client);
    const bounds = Array.from({ length: deaths.length + 1 }, (_, life) =>
      Math.round((runs * life) / deaths.length),
    );
    await underDeaths(this.#mortal, deaths, (life, lengthMs) => {
      const fates = Array.from({ length: bounds[life + 1]! - bounds[life]! }, () => this.#fate(lengthMs));
      return Promise.all(fates.map((fate) => this.#play(fate)));
    });
    await ticks.pause();
    await client.allEnded();
    this.#faults.push(...(await ticks.faults()));
  }

  /** What became of the runs and should not have. */
  async faults(): Promise<string[]> {
    const runs = await readRuns(this.#mortal.client, this.#ledger);
    const resumed = runs.filter(({ run }) => run.resumeCount > 0).length;
    const { length } = this.#ledger.entries;
    console.info(`chaos: ${runs.length} runs, ${resumed} of them resumed, ${length} requests`);
    return [...this.#faults, ...faultsOf(this.#started, runs)];
  }

  #fate(lifeMs: number): Fate {
    const random = this.#random;
    const place = this.#places++;
    const kind = kindOf(place, random);
    const isPlanned = random() < PLANNED_SHARE && kind.mayBePlanned;
    const isCancelled = random() < CANCELLED_SHARE;
    return {
      place,
      kind: { ...kind, signals: shuffled(random, kind.signals) },
      startsInMs: random() * lifeMs,
      plannedMs: isPlanned ? random() * LONGEST_PAUSE_MS : null,
      signalledInMs: random() * LONGEST_PAUSE_MS,
      cancelledInMs: isCancelled ? random() * LONGEST_PAUSE_MS : null,
    };
  }

  async #play({ place, kind, ...times }: Fate): Promise<void> {
    const { client } = this.#mortal;
    await pause(times.startsInMs);
    const runAt = times.plannedMs === null ? undefined : Math.round(Date.now() + times.plannedMs);
    const { workflowId, input, signals } = kind;
    const id = await client.start(workflowId, { input, idempotencyKey: `chaos-${place}`, runAt });
    this.#started.push({ id, kind, isCancelled: times.cancelledInMs !== null });
    const signal = async (): Promise<void> => {
      await pause(times.signalledInMs);
      await Promise.all(signals.map((one) => client.signal(id, one)));
    };
    const cancel = async (): Promise<void> => {
      if (times.cancelledInMs === null) return;
      await pause(times.cancelledInMs);
      await client.cancel(id);
    };
    await Promise.all([signal(), cancel()]);
  }
}

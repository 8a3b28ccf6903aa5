import type { RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';
import { isSuspect, suspectLimit } from './poison.ts';

/**
 * Allows only one suspect in memory at a time, so that a crash fails only one run. A suspect is a run that one more
 * crash would fail. @spec docs/decisions/0176
 */
export class Suspects {
  /** Limits for store queries. A run beyond these limits is suspected of crashing its process. */
  readonly limit: SuspectLimit;
  readonly #poisonAfter: number;
  readonly #requestTick: () => void;
  #claimedId: string | null = null;

  /** `requestTick` is called when the next suspect can be claimed. */
  constructor(poisonAfter: number, requestTick: () => void) {
    this.limit = suspectLimit(poisonAfter);
    this.#poisonAfter = poisonAfter;
    this.#requestTick = requestTick;
  }

  has(run: RunRecord): boolean {
    return isSuspect(run, this.#poisonAfter);
  }

  get isBusy(): boolean {
    return this.#claimedId !== null;
  }

  /** Returns false if the run is a suspect and another suspect is in memory. */
  mayBegin(run: RunRecord): boolean {
    if (!this.has(run) || run.id === this.#claimedId) return true;
    if (this.isBusy) return false;
    this.#claimedId = run.id;
    return true;
  }

  /** Allows the next suspect to be claimed. Called when the current suspect leaves memory or finishes a step. */
  left({ id }: Pick<RunRecord, 'id'>): void {
    if (id !== this.#claimedId) return;
    this.#claimedId = null;
    this.#requestTick();
  }
}

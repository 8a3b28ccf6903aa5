import type { RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';
import { isSuspect, suspectLimit } from './poison.ts';

/**
 * Tracks suspects: runs that fail at the next crash, because their work was in flight at each earlier crash. Only one
 * suspect is in memory at a time, so that a crash does not fail several. @spec docs/decisions/0176
 */
export class Suspects {
  /** Limits from which a run is a suspect, for queries of the store. */
  readonly limit: SuspectLimit;
  readonly #poisonAfter: number;
  readonly #requestTick: () => void;
  #claimedId: string | null = null;

  /** `requestTick` is called when the next suspect may be claimed. */
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

  /** Returns false for a suspect while another suspect is in memory. */
  mayBegin(run: RunRecord): boolean {
    if (!this.has(run) || run.id === this.#claimedId) return true;
    if (this.isBusy) return false;
    this.#claimedId = run.id;
    return true;
  }

  /** Lets the next suspect begin. Called when the current suspect has left memory or finished a step. */
  left({ id }: Pick<RunRecord, 'id'>): void {
    if (id !== this.#claimedId) return;
    this.#claimedId = null;
    this.#requestTick();
  }
}

import type { RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';
import { isSuspect, suspectLimit } from './poison.ts';

/**
 * Runs whose next crash is their last: work of theirs was in flight each time that the service died. One at a time is in memory,
 * so that a crash with several of them in flight does not fail them all. @spec docs/decisions/0176
 */
export class Suspects {
  /** What the store tells them by. */
  readonly limit: SuspectLimit;
  readonly #poisonAfter: number;
  readonly #lookAgain: () => void;
  #atWork: string | null = null;

  /** `lookAgain` is called when it is the turn of the next one. */
  constructor(poisonAfter: number, lookAgain: () => void) {
    this.limit = suspectLimit(poisonAfter);
    this.#poisonAfter = poisonAfter;
    this.#lookAgain = lookAgain;
  }

  has(run: RunRecord): boolean {
    return isSuspect(run, this.#poisonAfter);
  }

  get isBusy(): boolean {
    return this.#atWork !== null;
  }

  /** False for a suspect beside another one. */
  mayBegin(run: RunRecord): boolean {
    if (!this.has(run) || run.id === this.#atWork) return true;
    if (this.isBusy) return false;
    this.#atWork = run.id;
    return true;
  }

  /** The run is out of memory, or has finished a step since. */
  left({ id }: Pick<RunRecord, 'id'>): void {
    if (id !== this.#atWork) return;
    this.#atWork = null;
    this.#lookAgain();
  }
}

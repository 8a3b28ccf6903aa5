import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Branch } from './branches.ts';

/** A branch that waits for another one comes to no step by itself; the next completion is held back for it so long. */
const LONGEST_REST_MS = 20;

/**
 * Hands completions of steps to the function in the order in which they were recorded, one at a time: each finds the other
 * branches where it found them in every earlier pass.
 */
export class Turns {
  /** Completions that are known and wait for those before them, by their place in the order. */
  readonly #held = new Map<number, { branch: Branch; resolve(): void }>();
  #given = 0;
  #isGiving = false;
  #isOver = false;
  /** The branch that goes on with the latest completion; null once it has come to its next step, or ended. */
  #going: Branch | null = null;
  #arrived = (): void => {};

  /** Branches whose completion waits for its turn, while no turn is under way. */
  get held(): number {
    return this.#isGiving ? 0 : this.#held.size;
  }

  /** Resolves when it is the completion's turn, for which `give` is to be called. */
  wait(order: number, branch: Branch): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(order, { branch, resolve });
    return promise;
  }

  /** Hands on all whose turn it is. */
  async give(): Promise<void> {
    if (this.#isGiving) return;
    this.#isGiving = true;
    for (;;) {
      const next = this.#held.get(this.#given + 1);
      if (!next || this.#isOver) break;
      this.#held.delete(++this.#given);
      this.#going = next.branch;
      next.resolve();
      await this.#rest();
    }
    this.#isGiving = false;
  }

  /** The branch has come to a step, or to `ctx.all`. */
  arrive(branch: Branch): void {
    if (this.#going !== branch) return;
    this.#going = null;
    this.#arrived();
  }

  /** The branch has ended: `next` goes on in its place, if one does. */
  end(branch: Branch, next: Branch | null): void {
    if (this.#going !== branch) return;
    if (next) this.#going = next;
    else this.arrive(branch);
  }

  stop(): void {
    this.#isOver = true;
  }

  /** Until the branch has gone as far as it can, and what it woke has too. */
  async #rest(): Promise<void> {
    await nextTurn();
    if (this.#going === null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#arrived = resolve;
    const over = new AbortController();
    await Promise.race([promise, pause(LONGEST_REST_MS, undefined, { signal: over.signal }).catch(() => {})]);
    over.abort();
    await nextTurn();
  }
}

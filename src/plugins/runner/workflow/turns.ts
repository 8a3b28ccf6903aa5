import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Branch } from './branches.ts';

/**
 * Longest wait for a branch to reach its next step. A branch that waits for another branch might never reach a step.
 * The wait covers asynchronous work between two steps, such as a digest, on a machine whose processors are busy: if it
 * ends too early, branches can interleave differently in the next replay. A branch that waits for another branch delays
 * each replay by this time.
 */
const LONGEST_REST_MS = 250;

/**
 * Delivers step completions to the workflow function one at a time, in their recorded order. All replays then
 * interleave branches identically.
 */
export class Turns {
  /** Completions that wait for earlier completions, keyed by order number. */
  readonly #held = new Map<number, { branch: Branch; resolve(): void }>();
  #given = 0;
  #isGiving = false;
  #isOver = false;
  /** The branch that received the latest completion. Null after this branch has reached its next step or ended. */
  #going: Branch | null = null;
  #arrived = (): void => {};

  /** Number of waiting completions, or 0 while a completion is being delivered. */
  get held(): number {
    return this.#isGiving ? 0 : this.#held.size;
  }

  /** Queues the completion of a step. Resolves when `give` delivers the completion. */
  wait(order: number, branch: Branch): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(order, { branch, resolve });
    return promise;
  }

  /** Delivers the queued completions in order, up to the first missing order number. */
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

  /** Callback that is called when the branch has reached a step or `ctx.all`. */
  arrive(branch: Branch): void {
    if (this.#going !== branch) return;
    this.#going = null;
    this.#arrived();
  }

  /**
   * Must be called when the branch has ended. If `next` is given, the branch `next` continues instead of the ended
   * branch.
   */
  end(branch: Branch, next: Branch | null): void {
    if (this.#going !== branch) return;
    if (next) this.#going = next;
    else this.arrive(branch);
  }

  stop(): void {
    this.#isOver = true;
  }

  /** Waits until the branch with the latest completion reaches its next step, for at most `LONGEST_REST_MS`. */
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

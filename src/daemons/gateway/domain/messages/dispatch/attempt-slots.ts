import type { Clock } from '../../../../../kit/time/clock.ts';

/** Attempts that started less than `SLOW_MS` ago. */
export const MAX_FAST = 512;
/** The part of the fast attempts that endpoints may use whose last attempt did not succeed. */
export const MAX_UNPROVEN = 384;
/** Older attempts. They only wait, so many of them are cheap. */
export const MAX_SLOW = 4096;
const SLOW_MS = 1000;

interface Running {
  isProven: boolean;
  isSlow: boolean;
  isOver: boolean;
  startedAt: number;
}

/**
 * Slots of all attempts. An attempt that lasts longer than a second leaves its fast slot to others, so that endpoints
 * that never answer do not delay those that do.
 */
export class AttemptSlots {
  readonly #clock: Clock;
  readonly #onFree: () => void;
  /** Fast attempts in the order of their start. */
  #running: Running[] = [];
  #fast = 0;
  #unproven = 0;
  #slow = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, onFree: () => void) {
    this.#clock = clock;
    this.#onFree = onFree;
  }

  get inFlight(): number {
    return this.#fast + this.#slow;
  }

  isFree(isProven: boolean): boolean {
    return this.#fast < MAX_FAST && (isProven || this.#unproven < MAX_UNPROVEN);
  }

  /** Returns the function that frees the slot. */
  take(isProven: boolean): () => void {
    const attempt = { isProven, isSlow: false, isOver: false, startedAt: this.#clock.monotonic() };
    this.#running.push(attempt);
    this.#fast++;
    if (!isProven) this.#unproven++;
    this.#cancelTimer ??= this.#clock.after(SLOW_MS, () => this.#age());
    return () => {
      if (attempt.isOver) return;
      attempt.isOver = true;
      if (attempt.isSlow) this.#slow--;
      else this.#leaveFast(attempt);
    };
  }

  close(): void {
    this.#cancelTimer?.();
  }

  #leaveFast({ isProven }: Running): void {
    this.#fast--;
    if (!isProven) this.#unproven--;
  }

  /** Moves attempts that have become slow, and forgets those that are over. */
  #age(): void {
    const old = this.#clock.monotonic() - SLOW_MS;
    const kept: Running[] = [];
    let moved = 0;
    for (const attempt of this.#running) {
      if (attempt.isOver) continue;
      if (attempt.startedAt > old || this.#slow >= MAX_SLOW) kept.push(attempt);
      else {
        attempt.isSlow = true;
        this.#slow++;
        this.#leaveFast(attempt);
        moved++;
      }
    }
    this.#running = kept;
    this.#cancelTimer = kept.length === 0 ? undefined : this.#clock.after(AGE_EVERY_MS, () => this.#age());
    if (moved > 0) this.#onFree();
  }
}

const AGE_EVERY_MS = 100;

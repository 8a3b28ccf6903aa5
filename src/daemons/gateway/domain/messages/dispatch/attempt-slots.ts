import { LIMITS } from '../../../../../contracts/index.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { BodyBytes } from './body-bytes.ts';

/** Attempts that started less than `SLOW_MS` ago. */
export const MAX_FAST = 512;
/** The part of the fast attempts that endpoints may use whose last attempt did not succeed. */
export const MAX_UNPROVEN = 384;
/** Older attempts. They only wait, so many of them are cheap. */
export const MAX_SLOW = 4096;
const MB = 1024 * 1024;
/** At this many bytes of bodies, no further attempt starts or becomes slow. The last body can exceed the limit. */
export const MAX_FAST_BYTES = 32 * MB;
export const MAX_UNPROVEN_BYTES = 24 * MB;
export const MAX_SLOW_BYTES = 96 * MB;
/** Assumed for a body that must be read first. The bodies of one read have at most these bytes together. */
export const UNREAD_BYTES = LIMITS.messageBytes;
const SLOW_MS = 1000;
const AGE_EVERY_MS = 100;

interface Running {
  messageId: string;
  bytes: number;
  isProven: boolean;
  isSlow: boolean;
  isOver: boolean;
  startedAt: number;
}

export interface AttemptSlot {
  /** Sets the size of a body that was not known at the start. */
  resize(bytes: number): void;
  free(): void;
}

/**
 * Slots and bytes of all attempts. An attempt that lasts longer than a second leaves its fast slot to others, so that
 * endpoints that never answer do not delay those that do.
 */
export class AttemptSlots {
  readonly #clock: Clock;
  readonly #onFree: () => void;
  /** Fast attempts in the order of their start. */
  #running: Running[] = [];
  readonly #fast = new BodyBytes();
  /** The part of the fast attempts that is unproven. */
  readonly #unproven = new BodyBytes();
  readonly #slow = new BodyBytes();
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, onFree: () => void) {
    this.#clock = clock;
    this.#onFree = onFree;
  }

  get inFlight(): number {
    return this.#fast.attempts + this.#slow.attempts;
  }

  /** Bytes of the bodies in flight. */
  get bytes(): number {
    return this.#fast.total + this.#slow.total;
  }

  isFree(isProven: boolean): boolean {
    if (!hasRoom(this.#fast, MAX_FAST, MAX_FAST_BYTES)) return false;
    return isProven || hasRoom(this.#unproven, MAX_UNPROVEN, MAX_UNPROVEN_BYTES);
  }

  take(isProven: boolean, messageId: string, bytes = UNREAD_BYTES): AttemptSlot {
    const startedAt = this.#clock.monotonic();
    const attempt = { messageId, bytes, isProven, isSlow: false, isOver: false, startedAt };
    this.#running.push(attempt);
    this.#fast.add(messageId, bytes);
    if (!isProven) this.#unproven.add(messageId, bytes);
    this.#cancelTimer ??= this.#clock.after(SLOW_MS, () => this.#age());
    return {
      resize: (actual) => this.#resize(attempt, actual),
      free: () => this.#free(attempt),
    };
  }

  close(): void {
    this.#cancelTimer?.();
  }

  #resize(attempt: Running, bytes: number): void {
    if (attempt.bytes === bytes) return;
    attempt.bytes = bytes;
    for (const pool of [this.#fast, this.#unproven, this.#slow]) pool.resize(attempt.messageId, bytes);
  }

  #free(attempt: Running): void {
    if (attempt.isOver) return;
    attempt.isOver = true;
    if (attempt.isSlow) this.#slow.remove(attempt.messageId);
    else this.#leaveFast(attempt);
  }

  #leaveFast({ isProven, messageId }: Running): void {
    this.#fast.remove(messageId);
    if (!isProven) this.#unproven.remove(messageId);
  }

  /** Moves attempts that have become slow, and removes those that are over. */
  #age(): void {
    const old = this.#clock.monotonic() - SLOW_MS;
    const kept: Running[] = [];
    let moved = 0;
    for (const attempt of this.#running) {
      if (attempt.isOver) continue;
      if (attempt.startedAt > old || !hasRoom(this.#slow, MAX_SLOW, MAX_SLOW_BYTES)) kept.push(attempt);
      else {
        attempt.isSlow = true;
        this.#slow.add(attempt.messageId, attempt.bytes);
        this.#leaveFast(attempt);
        moved++;
      }
    }
    this.#running = kept;
    this.#cancelTimer = kept.length === 0 ? undefined : this.#clock.after(AGE_EVERY_MS, () => this.#age());
    if (moved > 0) this.#onFree();
  }
}

const hasRoom = ({ attempts, total }: BodyBytes, maxAttempts: number, maxBytes: number): boolean =>
  attempts < maxAttempts && total < maxBytes;

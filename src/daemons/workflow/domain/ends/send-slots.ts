import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import { createFairSlots } from '../effects/fair-slots.ts';

/** Maximum number of concurrent sends. One tenant can have about three quarters of them. */
const MAX_SENDS = 40;
/** Maximum number of tasks that wait for a slot in memory, together with their runs. */
const MAX_WAITING = 50;
/** Maximum wait for a slot. The claim also covers the expressions, which can take up to a second each, and the send. */
const MAX_WAIT_MS = seconds(2);
/** Minimum time until a task that got no slot is due again. */
const MIN_RELEASE_MS = seconds(1);
const MAX_RELEASE_MS = seconds(60);
/** Interval between the due times of these tasks. It limits the writes while the gateway is slow. */
const RELEASE_INTERVAL_MS = 4;

/** Slots of the messages that ended runs send, shared fairly by tenants. */
export class SendSlots {
  readonly #clock: Clock;
  readonly #slots = createFairSlots(MAX_SENDS);
  #waiting = 0;
  #lastReleaseAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Takes a slot. Calls `waits` and waits if none is free. Returns false if none becomes free in time. */
  async take(tenantId: string, { signal, waits }: { signal: AbortSignal; waits(): void }): Promise<boolean> {
    if (this.#slots.tryTake(tenantId)) return true;
    if (this.#waiting >= MAX_WAITING || signal.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const withdraw = this.#slots.ask(tenantId, () => resolve(true));
    const giveUp = (): void => {
      withdraw();
      resolve(false);
    };
    const cancelTimer = this.#clock.after(MAX_WAIT_MS, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting++;
    waits();
    try {
      return await promise;
    } finally {
      this.#waiting--;
      cancelTimer();
      signal.removeEventListener('abort', giveUp);
    }
  }

  release(tenantId: string): void {
    this.#slots.release(tenantId);
  }

  /** Returns the time at which a task that got no slot is due again. */
  nextTry(): number {
    const now = this.#clock.now();
    const next = Math.max(now + MIN_RELEASE_MS, this.#lastReleaseAt + RELEASE_INTERVAL_MS);
    this.#lastReleaseAt = Math.min(next, now + MAX_RELEASE_MS);
    return this.#lastReleaseAt;
  }
}

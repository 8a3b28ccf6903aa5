import type { PlatformError } from '../../../kit/errors/errors.ts';
import { createFairShares, createTenancy, type FairShares } from '../../../kit/limits/fair-shares.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { createWaitQueue, type WaitQueue } from '../wait-queue.ts';
import { type Call, cancelled, unavailable } from '../worker/call.ts';

const MAX_QUEUED_PER_SLOT = 16;
const RETRY_AFTER_S = 5;

interface Waiting {
  take(): void;
  giveUp(error: PlatformError): void;
}

/**
 * Limits concurrent containers, shares the slots fairly between tenants, and queues calls that exceed the limit. @spec
 * docs/decisions/0074
 */
export class Slots {
  readonly #count: number;
  readonly #tenancy = createTenancy();
  readonly #shares: FairShares;
  readonly #queue: WaitQueue;
  readonly #waiting = new Map<Call, Waiting>();
  #isClosed = false;
  #onIdle = (): void => {};

  constructor(count: number) {
    this.#count = count;
    this.#shares = createFairShares(count, this.#tenancy);
    this.#queue = createWaitQueue({ maxCalls: count * MAX_QUEUED_PER_SLOT, tenancy: this.#tenancy });
  }

  /**
   * Waits for a slot and returns a function that releases the slot. Throws SERVICE_UNAVAILABLE if the queue is full or
   * the wait takes too long.
   */
  async enter(call: Call): Promise<() => void> {
    if (this.#isClosed) throw stopping();
    const { tenantId } = call.request;
    this.#tenancy.note(tenantId);
    if (!this.#shares.take(tenantId)) {
      const refused = this.#queue.enter(call);
      if (refused) throw unavailable(`No container is free: ${refused}.`, RETRY_AFTER_S, 'queue_full');
      await this.#turn(call);
    }
    return () => this.#leave(tenantId);
  }

  /** Rejects queued calls, and all calls from now on. */
  close(): void {
    this.#isClosed = true;
    for (const call of this.#queue.clear()) this.#waiting.get(call)!.giveUp(stopping());
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#shares.free === this.#count) resolve();
    });
  }

  #leave(tenantId: string): void {
    this.#shares.release(tenantId);
    for (let call = this.#next(); call; call = this.#next()) this.#waiting.get(call)!.take();
    if (this.#shares.free === this.#count) this.#onIdle();
  }

  /**
   * Takes a slot for the next call in round-robin order of tenants. Skips tenants that have used their share of the
   * slots.
   */
  #next(): Call | undefined {
    return this.#queue.next((call) => this.#shares.take(call.request.tenantId));
  }

  /** Resolves when the queued call gets a slot. Rejects if the call is cancelled or its wait times out. */
  #turn(call: Call): Promise<void> {
    return new Promise((resolve, reject) => {
      const leaveQueue = (error: PlatformError): void => {
        if (this.#queue.leave(call)) this.#waiting.get(call)!.giveUp(error);
      };
      // Calls with `onBegun` wait without a time limit.
      const stopTimer = call.onBegun
        ? () => {}
        : systemClock.after(Math.max(call.timeoutMs, seconds(15)), () =>
            leaveQueue(unavailable('No container became free in time; all are busy.', RETRY_AFTER_S)),
          );
      const end = (settle: () => void): void => {
        stopTimer();
        this.#waiting.delete(call);
        settle();
      };
      this.#waiting.set(call, { take: () => end(resolve), giveUp: (error) => end(() => reject(error)) });
      call.cancelWith(() => leaveQueue(cancelled(call.request)));
    });
  }
}

function stopping(): PlatformError {
  return unavailable('The platform is stopping.', RETRY_AFTER_S);
}

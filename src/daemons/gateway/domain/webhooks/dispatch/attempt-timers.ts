import type { Clock } from '../../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../../kit/time/deadlines.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';

/**
 * Number of deliveries with a retry timer above which only deliveries with an order key get a timer. Other deliveries
 * wait until the store is scanned again.
 */
const MAX_TIMERS = 10_000;

/** Schedules the next attempts of failed deliveries with timers. */
export class AttemptTimers {
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #stops = new Map<string, () => void>();

  constructor(clock: Clock, deadlines: Deadlines) {
    this.#clock = clock;
    this.#deadlines = deadlines;
  }

  /**
   * Returns whether the delivery gets a timer. Deliveries with an order key always get a timer, because later
   * deliveries with the same key could otherwise overtake the failed delivery.
   */
  maySchedule({ orderKey }: Pick<NewDelivery, 'orderKey'>): boolean {
    return this.#stops.size < MAX_TIMERS || orderKey !== null;
  }

  /** Schedules a retry. `at` is in epoch ms of this machine's clock. */
  schedule(webhookId: string, at: number, due: () => void): void {
    const stop = this.#clock.after(this.#deadlines.leftMs(at), () => {
      this.#stops.delete(webhookId);
      due();
    });
    this.#stops.set(webhookId, stop);
  }

  stopAll(): void {
    for (const stop of this.#stops.values()) stop();
  }
}

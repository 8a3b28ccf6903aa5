import type { Clock } from '../../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../../kit/time/deadlines.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';

/** Maximum deliveries with a retry timer; any further ones are polled from the store. */
const MAX_TIMERS = 10_000;

/** Retry timers of deliveries. */
export class AttemptTimers {
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #stops = new Map<string, () => void>();

  constructor(clock: Clock, deadlines: Deadlines) {
    this.#clock = clock;
    this.#deadlines = deadlines;
  }

  /** Deliveries with an order always get a timer: otherwise their successors would overtake them. */
  maySchedule({ orderKey }: Pick<NewDelivery, 'orderKey'>): boolean {
    return this.#stops.size < MAX_TIMERS || orderKey !== null;
  }

  /** `at`: epoch ms of this machine's clock. */
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

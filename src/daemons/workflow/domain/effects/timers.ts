import type { Clock } from '../../../../kit/time/clock.ts';
import type { RunEvent } from '../run/events.ts';

/** Named timers of a run. Each timer dispatches its event once. */
export class Timers {
  readonly #clock: Clock;
  readonly #dispatch: (event: RunEvent) => void;
  readonly #stops = new Map<string, () => void>();

  constructor(clock: Clock, dispatch: (event: RunEvent) => void) {
    this.#clock = clock;
    this.#dispatch = dispatch;
  }

  /** Sets a timer and replaces any timer with the same name. */
  set(name: string, ms: number, event: RunEvent): void {
    this.clear(name);
    const stop = this.#clock.after(ms, () => {
      this.#stops.delete(name);
      this.#dispatch(event);
    });
    this.#stops.set(name, stop);
  }

  clear(name: string): void {
    this.#stops.get(name)?.();
    this.#stops.delete(name);
  }

  close(): void {
    for (const stop of this.#stops.values()) stop();
    this.#stops.clear();
  }
}

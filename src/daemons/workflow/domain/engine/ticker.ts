import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';

/** Maximum time between two checks. The wall clock can jump, and other processes can change runs. */
const MAX_SLEEP_MS = seconds(1);
const MIN_SLEEP_MS = 5;

export interface TickerDeps {
  clock: Clock;
  logger: Logger;
  /** Subject of the log line of a failed call, such as "Due runs". */
  subject: string;
  look(): Promise<number | null>;
}

/** Timer that calls `look` at each due time and at least once a second. `look` returns the next due time. */
export class Ticker {
  readonly #deps: TickerDeps;
  #cancel: (() => void) | null = null;
  #armedFor = Number.POSITIVE_INFINITY;
  #running: Promise<void> | undefined;
  #again = false;
  #isStopped = false;

  constructor(deps: TickerDeps) {
    this.#deps = deps;
  }

  /** Schedules a call of `look` at the time `at`, unless an earlier call is scheduled. */
  notice(at: number): void {
    if (this.#isStopped) return;
    if (this.#running) this.#again = true;
    else if (at <= this.#deps.clock.now()) void this.tick();
    else if (at < this.#armedFor) this.#arm(at);
  }

  /** Calls `look` now. The promise settles when `look` has finished. */
  tick(): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#lookOn().finally(() => {
      this.#running = undefined;
      // A tick can arrive between the last check of `#again` and this callback.
      if (this.#again) void this.tick();
    });
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#running;
  }

  #arm(at: number): void {
    const { clock } = this.#deps;
    const sleepMs = Math.min(MAX_SLEEP_MS, Math.max(MIN_SLEEP_MS, at - clock.now()));
    this.#cancel?.();
    this.#armedFor = clock.now() + sleepMs;
    this.#cancel = clock.after(sleepMs, () => void this.tick());
  }

  async #lookOn(): Promise<void> {
    let next: number | null = null;
    do {
      this.#again = false;
      try {
        next = await this.#deps.look();
      } catch (error) {
        const { logger, subject } = this.#deps;
        const message = `${subject} could not be looked up; the next attempt is in a second: ${messageOf(error)}`;
        logger.error(message, { error });
      }
    } while (this.#again && !this.#isStopped);
    if (!this.#isStopped) this.#arm(next ?? Number.POSITIVE_INFINITY);
  }
}

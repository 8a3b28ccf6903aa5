import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import type { Call } from './call.ts';

/** Time for a handler to stop after `ctx.signal` was aborted. */
const GRACE_MS = 500;
/** Minimum time limit for loading plugin code. Applies to calls whose own time limit excludes loading. */
const LOAD_MS = 15_000;

/** Timer of one call. Limits code loading, then the handler, and finally the grace period after an abort. */
export class HandlerTimeout {
  readonly #clock: Clock;
  readonly #call: Call;
  readonly #onTimeout: () => void;
  #stopTimer = () => {};

  constructor(clock: Clock, call: Call, onTimeout: () => void) {
    this.#clock = clock;
    this.#call = call;
    this.#onTimeout = onTimeout;
  }

  /**
   * Starts the time limit for loading the plugin's code. Without `call.onBegun`, the handler's time limit includes
   * loading.
   */
  limitLoading(): void {
    const { onBegun, timeoutMs } = this.#call;
    this.#limit(onBegun ? Math.max(timeoutMs, LOAD_MS) : timeoutMs);
  }

  limitHandler(): void {
    this.#limit(this.#call.timeoutMs);
  }

  /**
   * Starts the grace period of an aborted handler. The timer uses the system clock, even with a test clock, because the
   * timer protects this service.
   */
  startGracePeriod(onEnd: () => void): void {
    this.stop();
    this.#stopTimer = systemClock.after(GRACE_MS, onEnd);
  }

  stop(): void {
    this.#stopTimer();
  }

  #limit(ms: number): void {
    this.stop();
    this.#stopTimer = this.#clock.after(ms, this.#onTimeout);
  }
}

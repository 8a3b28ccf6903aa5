/** Time source and timers, injected so that tests control time. */
export interface Clock {
  /**
   * Wall-clock time in epoch ms, for records and expiry times. It can go backwards, because NTP or an operator can set
   * it.
   */
  now(): number;
  /**
   * Monotonic time in whole ms, for durations. The origin is arbitrary, but the same for all processes of a machine.
   */
  monotonic(): number;
  /** Runs `run` once after `ms`. The returned function cancels the timer. The timer never keeps the process alive. */
  after(ms: number, run: () => void): () => void;
}

/**
 * Offset from `performance.now()` to `process.hrtime()`. `performance.now()` starts with the process, but
 * `process.hrtime()` has the same origin in all processes of the machine.
 */
const monotonicOffsetMs = ((): number => {
  const [wholeSeconds, nanoseconds] = process.hrtime();
  return wholeSeconds * 1000 + nanoseconds / 1e6 - performance.now();
})();

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => Math.floor(performance.now() + monotonicOffsetMs),
  after(ms, run) {
    // Node fires timers with delays beyond 2^31-1 ms immediately, so longer timers are split into steps.
    const maxDelayMs = 2 ** 31 - 1;
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      timer = setTimeout(
        () => (left > maxDelayMs ? arm(left - maxDelayMs) : run()),
        Math.min(left, maxDelayMs),
      );
      timer.unref();
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

/** Calls `run` every `ms` until the returned function is called. */
export function every(clock: Clock, ms: number, run: () => void): () => void {
  let stop = clock.after(ms, tick);
  function tick(): void {
    stop = clock.after(ms, tick);
    run();
  }
  return () => stop();
}

export interface ManualClock extends Clock {
  /** Moves the wall clock and the monotonic time forward, and runs due timers in order. */
  advance(ms: number): void;
  /** Sets the wall clock only. Timers and `monotonic()` are unaffected. */
  jump(to: number): void;
}

/**
 * Start of the manual clock's monotonic time. The value is far from any wall-clock time, so that tests find mixed-up
 * clocks.
 */
const MANUAL_MONOTONIC_START_MS = 100_000_000;

/** Creates a clock for tests of the platform and of plugins. The clock moves only by `advance` and `jump`. */
export function manualClock(startAt = Date.UTC(2030, 0, 1)): ManualClock {
  let elapsed = MANUAL_MONOTONIC_START_MS;
  let offset = startAt - elapsed;
  let timers: Array<{ at: number; run: () => void }> = [];
  return {
    now: () => elapsed + offset,
    monotonic: () => elapsed,
    after(ms, run) {
      const timer = { at: elapsed + Math.max(0, ms), run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance(ms) {
      const until = elapsed + ms;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        timers = timers.filter((timer) => timer !== due);
        elapsed = Math.max(elapsed, due.at);
        due.run();
      }
      elapsed = until;
    },
    jump(to) {
      offset = to - elapsed;
    },
  };
}

/** Time as an argument: epoch milliseconds, and timers that a test moves by hand. */
export interface Clock {
  now(): number;
  /** Runs once after `ms`; the returned function calls it off. Never keeps the process alive. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: Date.now,
  after(ms, run) {
    // Node fires at once for delays beyond 2^31-1 ms; such a timer waits in steps.
    const longest = 2 ** 31 - 1;
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      timer = setTimeout(() => (left > longest ? arm(left - longest) : run()), Math.min(left, longest));
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
  /** Moves time forward and runs what falls due, in order. */
  advance(ms: number): void;
  /** Sets the wall clock without running timers: a jump. */
  jump(to: number): void;
}

/** A clock that stands still until moved; for tests, ours and plugin authors'. */
export function manualClock(startAt = Date.UTC(2030, 0, 1)): ManualClock {
  let now = startAt;
  let timers: Array<{ at: number; run: () => void }> = [];
  return {
    now: () => now,
    after(ms, run) {
      const timer = { at: now + Math.max(0, ms), run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        timers = timers.filter((timer) => timer !== due);
        now = Math.max(now, due.at);
        due.run();
      }
      now = until;
    },
    jump(to) {
      now = to;
    },
  };
}

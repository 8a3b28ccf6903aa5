import fc from 'fast-check';
import { expect, test } from 'vitest';
import { manualClock } from '../../src/kit/clock.ts';
import { createRateLimiter } from '../../src/kit/rate-limiter.ts';

test('allows the limit within a window that begins with the first call, and says how long to wait', () => {
  const clock = manualClock(0);
  const limiter = createRateLimiter(clock, 60_000);
  clock.advance(59_000);
  expect([1, 2, 3].map(() => limiter.take('a', 2).allowed)).toEqual([true, true, false]);
  clock.advance(30_000);
  expect(limiter.take('a', 2)).toEqual({ allowed: false, remaining: 0, resetMs: 30_000 });
  expect(limiter.take('b', 2)).toEqual({ allowed: true, remaining: 1, resetMs: 60_000 });
  clock.advance(30_000);
  expect(limiter.take('a', 2)).toEqual({ allowed: true, remaining: 1, resetMs: 60_000 });
});

test('whoever waits as long as told is let in, whatever came before', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 90_000 }), { maxLength: 60 }), (pauses) => {
      const clock = manualClock(0);
      const limiter = createRateLimiter(clock, 60_000);
      for (const pause of pauses) {
        clock.advance(pause);
        const { allowed, resetMs } = limiter.take('k', 1);
        if (allowed) continue;
        expect(resetMs).toBeGreaterThan(0);
        clock.advance(resetMs);
        expect(limiter.take('k', 1).allowed).toBe(true);
      }
    }),
  );
});

test('never allows more than the limit in any window, compared with a plain count', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 40_000 })), { maxLength: 80 }),
      (calls) => {
        const clock = manualClock(0);
        const limiter = createRateLimiter(clock, 60_000);
        const windows = new Map<string, { startedAt: number; count: number }>();
        for (const [key, pause] of calls) {
          clock.advance(pause);
          const now = clock.now();
          let window = windows.get(key);
          if (!window || now >= window.startedAt + 60_000) {
            window = { startedAt: now, count: 0 };
            windows.set(key, window);
          }
          expect(limiter.take(key, 3).allowed).toBe(window.count < 3);
          window.count = Math.min(3, window.count + 1);
        }
      },
    ),
  );
});

test('a clock that jumps back locks nobody out for longer than a window', () => {
  const clock = manualClock(10_000_000);
  const limiter = createRateLimiter(clock, 60_000);
  limiter.take('a', 1);
  clock.jump(5_000_000);
  expect(limiter.take('a', 1).allowed).toBe(true);
  expect(limiter.take('a', 1).resetMs).toBeLessThanOrEqual(60_000);
});

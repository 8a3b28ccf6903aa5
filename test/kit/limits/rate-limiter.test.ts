import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRateLimiter } from '../../../src/kit/limits/rate-limiter.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';

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

test('a caller that waits for the Retry-After is accepted, whatever came before', () => {
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

test('in no window, wherever it begins, there are more than the limit, and no call counts much longer than a window', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 40_000 })), { maxLength: 80 }),
      (calls) => {
        const clock = manualClock(0);
        const limiter = createRateLimiter(clock, 60_000);
        const allowed: Record<string, number[]> = { a: [], b: [] };
        for (const [key, pause] of calls) {
          clock.advance(pause);
          const now = clock.now();
          const within = (ms: number) => allowed[key]!.filter((at) => at > now - ms).length;
          const verdict = limiter.take(key, 3);
          if (verdict.allowed) expect(within(60_000)).toBeLessThan(3);
          else expect(within(61_000)).toBeGreaterThanOrEqual(3);
          if (verdict.allowed) allowed[key]!.push(now);
        }
      },
    ),
  );
});

test('a burst at the end of one minute uses up the start of the next', () => {
  const clock = manualClock(0);
  const limiter = createRateLimiter(clock, 60_000);
  expect(limiter.take('a', 60).allowed).toBe(true);
  clock.advance(59_000);
  for (let i = 1; i < 60; i++) expect(limiter.take('a', 60).allowed).toBe(true);
  clock.advance(1000);
  expect([limiter.take('a', 60).allowed, limiter.take('a', 60).allowed]).toEqual([true, false]);
  expect(limiter.peek('a', 60)).toEqual({ allowed: false, remaining: 0, resetMs: 59_000 });
});

test('beyond its maximum of keys a limiter has one count for all others', () => {
  const limiter = createRateLimiter(manualClock(0), 60_000, 2);
  const take = (key: string) => limiter.take(key, 1).allowed;
  expect(['a', 'b', 'c', 'd', 'a', 'e'].map(take)).toEqual([true, true, true, false, false, false]);
});

test('a wall clock that is set back neither lengthens nor ends a window', () => {
  const clock = manualClock(10_000_000);
  const limiter = createRateLimiter(clock, 60_000);
  limiter.take('a', 1);
  clock.jump(5_000_000);
  expect(limiter.take('a', 1)).toMatchObject({ allowed: false, resetMs: 60_000 });
  clock.advance(60_000);
  expect(limiter.take('a', 1).allowed).toBe(true);
});

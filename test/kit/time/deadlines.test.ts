import { expect, test } from 'vitest';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { createDeadlines } from '../../../src/kit/time/deadlines.ts';
import { hours, seconds } from '../../../src/kit/time/duration.ts';

test('a noted wait ends after its duration although the wall clock is set back', () => {
  const clock = manualClock();
  const deadlines = createDeadlines(clock);
  const at = deadlines.note(clock.now() + 2000);
  clock.jump(clock.now() - hours(1));
  expect(deadlines.leftMs(at)).toBe(2000);
  clock.advance(1999);
  expect(deadlines.isPast(at)).toBe(false);
  clock.advance(1);
  expect(deadlines.isPast(at)).toBe(true);
});

test('of two waits with the same end by the wall clock, the later counts', () => {
  const clock = manualClock();
  const deadlines = createDeadlines(clock);
  const at = deadlines.note(clock.now() + seconds(20));
  clock.jump(clock.now() - seconds(30));
  expect(deadlines.note(clock.now() + seconds(50))).toBe(at);
  expect(deadlines.leftMs(at)).toBe(seconds(50));
});

test('unknown and long waits end by the wall clock', () => {
  const clock = manualClock();
  const deadlines = createDeadlines(clock);
  const unknown = clock.now() + 2000;
  const long = deadlines.note(clock.now() + hours(2));
  clock.jump(clock.now() - hours(1));
  expect(deadlines.leftMs(unknown)).toBe(hours(1) + 2000);
  expect(deadlines.leftMs(long)).toBe(hours(3));
  clock.jump(long);
  expect([unknown, long].map(deadlines.isPast)).toEqual([true, true]);
});

import { Cron } from 'croner';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { namesDay } from '../../../src/daemons/workflow/domain/cron/cron-days.ts';
import { scheduleFault } from '../../../src/daemons/workflow/domain/cron/schedule-times.ts';

test.each([
  ['0 0 30 2 *', false],
  ['0 0 31 2,4,6,9,11 *', false],
  ['0 0 0 30-31 2 *', false],
  ['0 0 31W 4 *', false],
  ['0 0 29 2 +1#1', false],
  ['0 0 1-7 * +5#2', false],
  ['0 0 29 2 *', true],
  ['0 0 29 2 +1', true],
  ['0 0 30 2 1', true],
  ['0 0 L 2 *', true],
  ['0 0 LW 2 +5', true],
  ['0 0 LW * +6', false],
  ['0 0 22 2 +1L', true],
  ['0 0 15W * +0', false],
  ['@yearly', true],
])('%s names a day: %s', (cron, expected) => {
  expect(namesDay(cron)).toBe(expected);
});

test('a cron line that never matches is a fault that names the fields to change', () => {
  expect(scheduleFault({ cron: '0 0 30 2 *', timezone: 'UTC' })).toEqual({
    key: 'cron',
    message: expect.stringMatching(/"0 0 30 2 \*" never matches: .* change one of them/),
  });
  expect(scheduleFault({ cron: '0 0 29 2 *', timezone: 'UTC' })).toBeNull();
});

test('years, which no schedule has, are refused', () => {
  expect(scheduleFault({ cron: '0 0 0 30 2 * 2000-9999', timezone: 'UTC' })?.message).toContain(
    '5 or 6 parts',
  );
});

const oneOf = (...texts: string[]) => fc.constantFrom(...texts);
/** Mostly days that not every month has, or weekdays of which there may be none. */
const dates = fc
  .array(oneOf('28', '29', '30', '31', '29-30', '30-31', '1', '31W', '30W', '29W', '1W', '15W', 'L'), {
    minLength: 1,
    maxLength: 2,
  })
  .map((parts) => parts.join(','));
const months = oneOf('*', '2', '2,4', '4,6,9,11', '2,9', '1', '12', 'feb');
const nths = oneOf('', '#1', '#2', '#4', '#5', 'L');
const weekdays = fc
  .tuple(oneOf('', '+', '+'), fc.integer({ min: 0, max: 7 }), nths)
  .map(([and, weekday, nth]) => `${and}${weekday}${nth}`);
const lines = fc
  .tuple(
    fc.oneof(dates, oneOf('*', 'LW', '1-7', '*/29')),
    months,
    fc.oneof(weekdays, oneOf('*', '+1-5', '1-5')),
  )
  .map(([date, month, weekday]) => `0 0 ${date} ${month} ${weekday}`);

test('agrees with croner for any line and start time', () => {
  const times = ['2026-11-22T00:00:00Z', '2096-03-01T00:00:00Z', '2199-12-31T23:59:59Z'];
  fc.assert(
    fc.property(lines, oneOf(...times), (line, from) => {
      const next = new Cron(line, { timezone: 'UTC', paused: true }).nextRun(new Date(from));
      expect([line, namesDay(line)]).toEqual([line, next !== null]);
    }),
    { numRuns: 250, seed: 18 },
  );
}, 120_000);

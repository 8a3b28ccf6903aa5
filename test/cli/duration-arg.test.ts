import { expect, test } from 'vitest';
import { parseSince } from '../../src/cli/commands/logs/filter.ts';
import { durationArg } from '../../src/cli/duration-arg.ts';
import { days, hours, minutes, seconds } from '../../src/kit/time/duration.ts';

test.each([
  ['30s', seconds(30)],
  ['90m', minutes(90)],
  ['2h', hours(2)],
  ['7d', days(7)],
])('%s is a duration, and a time before now', (text, ms) => {
  expect(durationArg(text)).toBe(ms);
  expect(parseSince(text, days(100))).toBe(days(100) - ms);
});

test.each(['', '0s', '2', 'h', '1.5h', '-1h', '2 weeks'])('"%s" is no duration', (text) => {
  expect(() => durationArg(text)).toThrow(`"${text}" is not a duration.`);
});

test('--since also takes a space before the unit, and a time', () => {
  expect(parseSince('10 m', days(1))).toBe(days(1) - minutes(10));
  expect(parseSince('1970-01-02T00:00:00Z', days(9))).toBe(days(1));
  expect(() => parseSince('soon', 0)).toThrow('--since soon is neither a duration');
});

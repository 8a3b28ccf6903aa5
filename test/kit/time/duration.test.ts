import { expect, test } from 'vitest';
import { days, formatDuration, hours, minutes, seconds } from '../../../src/kit/time/duration.ts';

test.each([
  [0, '0ms'],
  [850, '850ms'],
  [seconds(1.34), '1.3s'],
  [minutes(4) + seconds(10), '4m 10s'],
  [minutes(5), '5m'],
  [hours(3) + minutes(2) + seconds(9), '3h 2m'],
  [days(2) + hours(4), '2d 4h'],
])('%d ms reads %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

import { expect, test } from 'vitest';
import { HandlerDurations } from '../../src/plugins/backends/worker/handler-durations.ts';

test('the average follows slower calls faster than quicker ones', () => {
  const durations = new HandlerDurations();
  expect(durations.averageMs('h')).toBe(Number.POSITIVE_INFINITY);
  for (const ms of [2, 12, 7]) durations.note('h', ms);
  expect(durations.averageMs('h')).toBe(7);
  durations.note('h', 2);
  expect(durations.averageMs('h')).toBe(6.5);
});

test('durations of many handlers evict those that are not used, and keep the others', () => {
  const durations = new HandlerDurations();
  durations.note('used', 5);
  for (let i = 0; i < 5000; i++) {
    durations.note(`other ${i}`, 1);
    expect(durations.averageMs('used')).toBe(5);
  }
  expect(durations.averageMs('other 0')).toBe(Number.POSITIVE_INFINITY);
});

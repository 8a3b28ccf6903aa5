import { expect, test } from 'vitest';
import { createBoundedCache } from '../../../src/kit/data/bounded-cache.ts';

const numbers = Array.from({ length: 100 }, (_, n) => n);

test.each([
  ['entries', undefined, 10],
  ['what they weigh', () => 5, 2],
])('holds two generations of so many %s, and what is read stays', (_, weigh, kept) => {
  const cache = createBoundedCache<number>(10, weigh);
  for (const n of numbers) {
    cache.set(`k${n}`, n);
    expect(cache.get('k0')).toBe(0);
  }
  const left = numbers.filter((n) => cache.get(`k${n}`) !== undefined);
  expect(left.length).toBeGreaterThanOrEqual(kept);
  expect(left.length).toBeLessThanOrEqual(2 * kept);
  expect(left.at(-1)).toBe(99);
  cache.clear();
  expect(cache.get('k99')).toBeUndefined();
});

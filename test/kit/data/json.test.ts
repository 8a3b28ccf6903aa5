import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nestsDeeperThan, readDotPath } from '../../../src/kit/data/json.ts';

test('a dot-path reads own properties only', () => {
  const body = JSON.parse('{"a":{"b":[{"c":7}]},"__proto__":{"own":1}}');
  expect(readDotPath(body, 'a.b.0.c')).toBe(7);
  expect(readDotPath(body, '__proto__.own')).toBe(1);
  for (const path of [
    'constructor',
    'a.constructor.name',
    'toString',
    'a.b.length.x',
    '',
    'a..b',
    'a.b.1.c',
  ]) {
    expect(readDotPath(body, path)).toBeUndefined();
  }
  expect(readDotPath('text', 'length')).toBeUndefined();
  expect(readDotPath(null, 'a')).toBeUndefined();
});

test('depth counts brackets outside of strings alone, like a walk over the parsed value', () => {
  const depth = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, noUnicodeString: false }), (value) => {
      const deep = depth(value);
      expect(nestsDeeperThan(JSON.stringify(value), deep)).toBe(false);
      if (deep > 0) expect(nestsDeeperThan(JSON.stringify(value), deep - 1)).toBe(true);
    }),
  );
  expect(nestsDeeperThan('"[[[[\\"[[["', 0)).toBe(false);
});

import { expect, test } from 'vitest';
import { createNumbering } from '../../../src/kit/data/numbering.ts';

test('a frequently used name is numbered without trying all numbers again', () => {
  const taken = new Set(['order2']);
  let questions = 0;
  const next = createNumbering((name) => {
    questions++;
    return taken.has(name);
  });
  const names = Array.from({ length: 5000 }, () => {
    const name = next('order');
    taken.add(name);
    return name;
  });
  expect(names.slice(0, 3)).toEqual(['order', 'order3', 'order4']);
  expect(taken.size).toBe(5001);
  expect(questions).toBeLessThan(6000);
});

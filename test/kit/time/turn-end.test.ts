import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atTurnEnd } from '../../../src/kit/time/turn-end.ts';

test('what a turn put off is handled at its end, in order; what comes meanwhile, a turn later', async () => {
  const handled: string[] = [];
  const soon = atTurnEnd((item: string) => {
    handled.push(item);
    if (item === 'a') soon('c');
  });
  soon('a');
  await Promise.resolve();
  soon('b');
  expect(handled).toEqual([]);
  await nextTurn();
  expect(handled).toEqual(['a', 'b']);
  await nextTurn();
  expect(handled).toEqual(['a', 'b', 'c']);
});

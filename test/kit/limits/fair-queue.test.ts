import { expect, test } from 'vitest';
import { createFairQueue } from '../../../src/kit/limits/fair-queue.ts';

const all = () => true;

function drain(
  turns: ReturnType<typeof createFairQueue<string>>,
  accepts: (tenantId: string) => boolean = all,
) {
  const taken: string[] = [];
  for (let next = turns.next(accepts); next; next = turns.next(accepts)) taken.push(next);
  return taken;
}

function filled(...items: Array<[tenantId: string, item: string]>) {
  const turns = createFairQueue<string>();
  for (const [tenantId, item] of items) turns.add(tenantId, item);
  return turns;
}

test('tenants take turns, and each one has its own in the order they came', () => {
  const turns = filled(['a', 'a1'], ['a', 'a2'], ['a', 'a3'], ['b', 'b1'], ['c', 'c1'], ['c', 'c2']);
  expect(turns.size).toBe(6);
  expect(drain(turns)).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
  expect(turns.size).toBe(0);
});

test('a tenant that is not accepted keeps its turn and blocks no other', () => {
  const turns = filled(['a', 'a1'], ['b', 'b1'], ['c', 'c1']);
  expect(turns.next((tenantId) => tenantId !== 'a')).toBe('b1');
  expect(turns.sizeOf((tenantId) => tenantId !== 'a')).toBe(1);
  turns.add('b', 'b2');
  expect(drain(turns)).toEqual(['a1', 'c1', 'b2']);
});

test('what no longer waits is not taken, and a tenant of whom nothing waits has no turn', () => {
  const turns = filled(['a', 'a1'], ['b', 'b1'], ['b', 'b2']);
  expect([turns.remove('a', 'a1'), turns.remove('a', 'a1'), turns.remove('b', 'b1')]).toEqual([
    true,
    false,
    true,
  ]);
  turns.add('a', 'a2');
  expect(drain(turns)).toEqual(['b2', 'a2']);
  turns.add('a', 'a3');
  turns.add('b', 'b3');
  expect([turns.clear(), turns.size, turns.next(all)]).toEqual([['a3', 'b3'], 0, undefined]);
});

test('an item that is put back is next, before the later items of its tenant', () => {
  const turns = filled(['a', 'a1'], ['a', 'a2'], ['a', 'a3'], ['b', 'b1']);
  expect([turns.next(all), turns.next(all), turns.next(all)]).toEqual(['a1', 'b1', 'a2']);
  for (const item of ['a2', 'a1']) turns.putBack('a', item, (other) => other > item);
  turns.add('b', 'b2');
  turns.putBack('b', 'b1', (other) => other > 'b1');
  expect(turns.size).toBe(5);
  expect(drain(turns)).toEqual(['b1', 'a1', 'b2', 'a2', 'a3']);
});

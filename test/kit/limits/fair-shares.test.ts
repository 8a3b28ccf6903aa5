import { expect, test } from 'vitest';
import { createFairShares, createTenancy, type FairShares } from '../../../src/kit/limits/fair-shares.ts';

function takeAll(shares: FairShares, tenantId: string): number {
  let taken = 0;
  while (shares.take(tenantId)) taken++;
  return taken;
}

test.each([
  [1, 1],
  [2, 2],
  [3, 3],
  [4, 3],
  [5, 4],
  [32, 24],
  [500, 375],
])('of %i places a tenant alone takes %i', (count, most) => {
  const shares = createFairShares(count);
  expect(takeAll(shares, 'a')).toBe(most);
  expect([shares.free, shares.mayTake('a')]).toEqual([count - most, false]);
});

test('each next tenant still finds places; when all are taken, the next that is given back is for who holds few', () => {
  const shares = createFairShares(64);
  const taken = ['a', 'b', 'c', 'd'].map((tenant) => takeAll(shares, tenant));
  expect(taken).toEqual([48, 12, 3, 1]);
  expect(shares.free).toBe(0);
  expect(shares.take('e')).toBe(false);
  shares.release('a');
  expect([shares.mayTake('a'), shares.take('e')]).toEqual([false, true]);
});

test('what is given back can be taken again', () => {
  const shares = createFairShares(8);
  expect([takeAll(shares, 'a'), takeAll(shares, 'b')]).toEqual([6, 2]);
  shares.release('a');
  shares.release('b');
  expect([shares.mayTake('a'), shares.mayTake('b')]).toEqual([true, true]);
  for (let i = 0; i < 5; i++) shares.release('a');
  shares.release('b');
  expect(shares.free).toBe(8);
  expect(takeAll(shares, 'b')).toBe(6);
});

test('several places are taken at once or not at all', () => {
  const shares = createFairShares(100);
  expect([shares.take('a', 101), shares.take('a', 60), shares.take('a', 30)]).toEqual([false, true, true]);
  expect([shares.take('a'), shares.take('b', 11), shares.take('b', 10), shares.free]).toEqual([
    false,
    false,
    true,
    0,
  ]);
  shares.release('a', 90);
  expect(shares.take('a', 90)).toBe(true);
});

test('where it is known who comes, a lone tenant takes all, and leaves some from when another has come', () => {
  const tenancy = createTenancy();
  const shares = createFairShares(8, tenancy);
  for (const tenantId of ['a', 'a']) tenancy.note(tenantId);
  expect(takeAll(shares, 'a')).toBe(8);
  tenancy.note('b');
  expect(shares.mayTake('b')).toBe(false);
  shares.release('a');
  expect([shares.mayTake('a'), shares.take('b')]).toEqual([false, true]);
  shares.release('a', 7);
  shares.release('b');
  expect(takeAll(shares, 'a')).toBe(6);
});

test('a tenant may keep a slot if it could take one again after its release', () => {
  const tenancy = createTenancy();
  tenancy.note('a');
  const shares = createFairShares(4, tenancy);
  expect([takeAll(shares, 'a'), shares.mayKeep('a')]).toEqual([4, true]);
  tenancy.note('b');
  expect(shares.mayKeep('a')).toBe(false);
  shares.release('a');
  expect([shares.mayKeep('a'), shares.mayTake('a')]).toEqual([true, false]);
});

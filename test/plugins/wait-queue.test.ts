import { expect, test } from 'vitest';
import { createWaitQueue } from '../../src/plugins/backends/wait-queue.ts';
import { createCall } from '../../src/plugins/backends/worker/call.ts';
import { requestFor } from './support.ts';

const callOf = (tenantId: string, bytes = 0) =>
  createCall(requestFor('h.js#h', { tenantId, input: 'x'.repeat(bytes) }), {});
const SHARE = /^the namespace "a" has used its share of the queue/;

test('a tenant takes three quarters of the places, and gets back what it leaves', () => {
  const queue = createWaitQueue({ maxCalls: 8 });
  const calls = Array.from({ length: 6 }, () => callOf('a'));
  for (const call of calls) expect(queue.enter(call)).toBeUndefined();
  expect(queue.enter(callOf('a'))).toMatch(SHARE);
  expect([queue.enter(callOf('b')), queue.enter(callOf('c'))]).toEqual([undefined, undefined]);
  expect(queue.enter(callOf('d'))).toBe('8 calls are waiting already');
  expect([queue.leave(calls[0]!), queue.leave(calls[0]!)]).toEqual([true, false]);
  expect(queue.enter(callOf('a'))).toMatch(SHARE);
  expect(queue.enter(callOf('d'))).toBeUndefined();
});

test('bytes are shared like places', () => {
  const queue = createWaitQueue({ maxCalls: 100, maxBytes: 100_000 });
  const calls = ['a', 'a', 'b'].map((tenantId) => callOf(tenantId, 30_000));
  expect(calls.map(queue.enter)).toEqual([undefined, undefined, undefined]);
  expect(queue.enter(callOf('c', 30_000))).toBe('3 calls are waiting already');
  expect(queue.enter(callOf('a', 1000))).toMatch(SHARE);
  expect(queue.next(() => true)).toBe(calls[0]);
  expect(queue.enter(callOf('c', 30_000))).toBeUndefined();
  expect(queue.clear()).toHaveLength(3);
  expect(queue.enter(callOf('a', 90_000))).toBeUndefined();
});

test('a lent call keeps its room, and its place when it is put back', () => {
  const queue = createWaitQueue({ maxCalls: 3 });
  const calls = [callOf('a'), callOf('b'), callOf('b')];
  for (const call of calls) expect(queue.enter(call)).toBeUndefined();
  const lent = [queue.lend(() => true), queue.lend(() => true), queue.lend(() => true)];
  expect(lent).toEqual(calls);
  expect([queue.size, queue.enter(callOf('c'))]).toEqual([0, '3 calls are waiting already']);
  queue.putBack(calls[2]!);
  queue.putBack(calls[1]!);
  queue.release(calls[0]!);
  expect([queue.size, queue.enter(callOf('c'))]).toEqual([2, undefined]);
  expect(Array.from({ length: 3 }, () => queue.next(() => true)).slice(0, 1)).toEqual([calls[1]]);
  expect(queue.size).toBe(0);
});

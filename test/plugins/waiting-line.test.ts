import { expect, test } from 'vitest';
import { createWaitingLine } from '../../src/plugins/backends/waiting-line.ts';
import { createCall } from '../../src/plugins/backends/worker/call.ts';
import { requestFor } from './support.ts';

const callOf = (tenantId: string, bytes = 0) =>
  createCall(requestFor('h.js#h', { tenantId, input: 'x'.repeat(bytes) }), {});
const SHARE = /^the namespace "a" has used its share of the queue/;

test('a tenant takes three quarters of the places, and gets back what it leaves', () => {
  const line = createWaitingLine({ maxCalls: 8 });
  const calls = Array.from({ length: 6 }, () => callOf('a'));
  for (const call of calls) expect(line.enter(call)).toBeUndefined();
  expect(line.enter(callOf('a'))).toMatch(SHARE);
  expect([line.enter(callOf('b')), line.enter(callOf('c'))]).toEqual([undefined, undefined]);
  expect(line.enter(callOf('d'))).toBe('8 calls are waiting already');
  expect([line.leave(calls[0]!), line.leave(calls[0]!)]).toEqual([true, false]);
  expect(line.enter(callOf('a'))).toMatch(SHARE);
  expect(line.enter(callOf('d'))).toBeUndefined();
});

test('bytes are shared like places', () => {
  const line = createWaitingLine({ maxCalls: 100, maxBytes: 100_000 });
  const calls = ['a', 'a', 'b'].map((tenantId) => callOf(tenantId, 30_000));
  expect(calls.map(line.enter)).toEqual([undefined, undefined, undefined]);
  expect(line.enter(callOf('c', 30_000))).toBe('3 calls are waiting already');
  expect(line.enter(callOf('a', 1000))).toMatch(SHARE);
  expect(line.next(() => true)).toBe(calls[0]);
  expect(line.enter(callOf('c', 30_000))).toBeUndefined();
  expect(line.clear()).toHaveLength(3);
  expect(line.enter(callOf('a', 90_000))).toBeUndefined();
});

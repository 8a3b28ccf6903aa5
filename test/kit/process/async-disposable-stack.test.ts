import { expect, test } from 'vitest';
import { AsyncDisposables } from '../../../src/kit/process/async-disposable-stack.ts';

test.each([
  ['the replacement for Node 22', AsyncDisposables],
  ['the class of newer versions', AsyncDisposableStack],
])('%s disposes in reverse order, once, and each resource although others fail', async (_, Stack) => {
  const calls: string[] = [];
  const stack = new Stack();
  const resource = { [Symbol.asyncDispose]: async () => void calls.push('used') };
  expect(stack.use(resource)).toBe(resource);
  stack.use({ [Symbol.dispose]: () => void calls.push('used at once') });
  stack.use(null);
  expect(stack.adopt('thing', (value) => void calls.push(value))).toBe('thing');
  stack.defer(() => Promise.reject(new Error('broken')));
  stack.defer(async () => void calls.push('deferred'));
  const moved = stack.move();
  expect([stack.disposed, moved.disposed]).toEqual([true, false]);
  expect(() => stack.defer(() => {})).toThrow(ReferenceError);
  await stack.disposeAsync();
  expect(calls).toEqual([]);
  await expect(moved[Symbol.asyncDispose]()).rejects.toThrow('broken');
  await moved.disposeAsync();
  expect(calls).toEqual(['deferred', 'thing', 'used at once', 'used']);
  expect(() => new Stack().use({} as AsyncDisposable)).toThrow(TypeError);
});

import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { raceAbort } from '../../src/plugins/runner/race-abort.ts';

const STOPPED = new Error('stopped');

test('settles like the promise while the signal is not aborted', async () => {
  const { signal } = new AbortController();
  expect(await raceAbort(Promise.resolve(1), signal)).toBe(1);
  await expect(raceAbort(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
});

test('rejects with the reason once the signal is aborted', async () => {
  const controller = new AbortController();
  const race = raceAbort(new Promise(() => {}), controller.signal);
  controller.abort(STOPPED);
  await expect(race).rejects.toBe(STOPPED);
});

test.each([
  ['that never settles', () => new Promise(() => {})],
  ['that has resolved', () => Promise.resolve(1)],
  ['that rejects later', () => delay(1).then(() => Promise.reject(new Error('late')))],
])('rejects for a signal that is aborted already, and a promise %s', async (_, start) => {
  await expect(raceAbort(start(), AbortSignal.abort(STOPPED))).rejects.toBe(STOPPED);
  await delay(5);
});

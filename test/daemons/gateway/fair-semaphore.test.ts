import { expect, test } from 'vitest';
import { FairSemaphore } from '../../../src/daemons/gateway/domain/webhooks/verify/fair-semaphore.ts';

/** Calls that begin when it is their turn, and end when the test says so. */
function start(maxWaiting: number) {
  const semaphore = new FairSemaphore({ concurrency: 1, maxWaiting });
  const begun: Array<{ name: string; end(): void }> = [];
  const refused: string[] = [];
  function call(source: string, name: string): void {
    const work = () => new Promise<void>((end) => begun.push({ name, end }));
    semaphore
      .run({ key: 'endpoint', source }, work, () => new Error(name))
      .catch(() => void refused.push(name));
  }
  return {
    call,
    refused,
    names: () => begun.map(({ name }) => name),
    /** Ends what runs, until nothing waits. */
    async finish(count: number) {
      for (let index = 0; index < count; index++) {
        await expect.poll(() => begun.length).toBeGreaterThan(index);
        begun[index]!.end();
      }
    },
  };
}

test('addresses take turns: one with many waiters delays another by at most one turn', async () => {
  const { call, names, finish, refused } = start(10);
  for (let n = 0; n < 6; n++) call('flood', `flood ${n}`);
  call('genuine', 'genuine 0');
  call('genuine', 'genuine 1');
  await finish(8);
  expect(names().slice(0, 5)).toEqual(['flood 0', 'flood 1', 'genuine 0', 'flood 2', 'genuine 1']);
  expect([names().length, refused]).toEqual([8, []]);
});

test('a full queue rejects the newest waiter of the address with the most', async () => {
  const { call, names, finish, refused } = start(4);
  for (let n = 0; n < 7; n++) call('flood', `flood ${n}`);
  await expect.poll(() => refused).toEqual(['flood 5', 'flood 6']);
  call('genuine', 'genuine');
  await expect.poll(() => refused).toEqual(['flood 5', 'flood 6', 'flood 4']);
  await finish(5);
  expect(names()).toEqual(['flood 0', 'flood 1', 'genuine', 'flood 2', 'flood 3']);
});

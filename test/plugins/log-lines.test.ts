import { expect, test } from 'vitest';
import { startBackend, type TestBackend } from './support.ts';

/** Numbered lines as they came out, and how many others were told to have been dropped. */
function counted({ logs }: TestBackend) {
  const messages = logs.lines.map(({ message }) => String(message));
  const dropped = messages.flatMap((text) => /^(\d+) log lines .*dropped/.exec(text)?.[1] ?? []);
  return {
    numbered: messages.filter((text) => text.startsWith('numbered ')),
    dropped: dropped.reduce((sum, count) => sum + Number(count), 0),
  };
}

test('a burst within the budget is kept complete and in order', async () => {
  const platform = await startBackend();
  await platform.call('attacks.js#logs', { input: 790 });
  await expect.poll(() => counted(platform).numbered.length).toBe(790);
  expect(counted(platform).numbered.map((text) => Number(text.slice(9)))).toEqual([...Array(790).keys()]);
  expect(counted(platform).dropped).toBe(0);
});

test('a burst of many calls and processes is kept complete', async () => {
  const platform = await startBackend({ config: { maxProcesses: 2 } });
  await Promise.all(Array.from({ length: 200 }, () => platform.call('attacks.js#logs', { input: 2 })));
  await expect.poll(() => counted(platform).numbered.length).toBe(400);
});

test('lines beyond the budget are counted: none is lost silently', async () => {
  const platform = await startBackend();
  await platform.call('attacks.js#logs', { input: 3000 });
  await expect.poll(() => counted(platform).numbered.length + counted(platform).dropped).toBe(3000);
  expect(counted(platform).numbered.length).toBeGreaterThanOrEqual(800);
  expect(counted(platform).dropped).toBeGreaterThan(1000);
});

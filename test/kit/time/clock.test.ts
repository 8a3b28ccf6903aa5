import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { every, manualClock, systemClock } from '../../../src/kit/time/clock.ts';

test('a manual clock runs what falls due, in order of time, and stands at the end of the step', () => {
  const clock = manualClock(0);
  const seen: Array<[string, number]> = [];
  clock.after(20, () => seen.push(['b', clock.now()]));
  clock.after(10, () => {
    seen.push(['a', clock.now()]);
    clock.after(5, () => seen.push(['a2', clock.now()]));
  });
  clock.after(31, () => seen.push(['late', clock.now()]));
  clock.advance(30);
  expect(seen).toEqual([
    ['a', 10],
    ['a2', 15],
    ['b', 20],
  ]);
  expect(clock.now()).toBe(30);
});

test('every repeats until called off, also from within', () => {
  const clock = manualClock(0);
  let runs = 0;
  const stop = every(clock, 10, () => {
    if (++runs === 3) stop();
  });
  clock.advance(100);
  expect(runs).toBe(3);
});

test('a timer longer than the 24.8 days node can wait does not fire at once', async () => {
  let fired = false;
  const stop = systemClock.after(30 * 86_400_000, () => {
    fired = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  stop();
  expect(fired).toBe(false);
});

test('timers and the monotonic clock do not notice that the wall clock is set', () => {
  const clock = manualClock();
  const startedAt = clock.monotonic();
  let runs = 0;
  clock.after(1000, () => runs++);
  clock.jump(clock.now() - 3_600_000);
  clock.advance(999);
  expect([runs, clock.monotonic() - startedAt]).toEqual([0, 999]);
  clock.advance(1);
  expect(runs).toBe(1);
});

test('the monotonic clock is shared by the processes of a machine', async () => {
  const before = systemClock.monotonic();
  const url = new URL('../../../src/kit/time/clock.ts', import.meta.url).href;
  const program = `import { systemClock } from '${url}'; console.log(systemClock.monotonic());`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  expect(Number(stdout)).toBeGreaterThanOrEqual(before);
  expect(Number(stdout)).toBeLessThanOrEqual(systemClock.monotonic());
});

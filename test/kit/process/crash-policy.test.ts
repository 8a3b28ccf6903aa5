import { expect, test } from 'vitest';
import { createCrashPolicy } from '../../../src/kit/process/crash-policy.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';

function policy(fraction: number) {
  const clock = manualClock();
  const crashes = createCrashPolicy({ clock, random: { ...systemRandom(), fraction: () => fraction } });
  return { clock, crashes };
}

test('the pause doubles with each crash in a row, within half and whole of its ceiling', () => {
  for (const [fraction, share] of [
    [0, 0.5],
    [1, 1],
  ] as const) {
    const { clock, crashes } = policy(fraction);
    const delays = Array.from({ length: 8 }, () => {
      clock.advance(seconds(20));
      const verdict = crashes.crashed(0);
      return verdict.loop ? 'loop' : verdict.delayMs / share;
    });
    expect(delays).toEqual([250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  }
});

test('thirty seconds of readiness make the next crash the first one again', () => {
  const { clock, crashes } = policy(1);
  crashes.crashed(0);
  crashes.crashed(0);
  clock.advance(seconds(30));
  expect(crashes.crashed(seconds(30))).toEqual({ loop: false, delayMs: 250 });
});

test('the fifth crash within a minute is a loop; spread further they are not; a reset forgets them', () => {
  const fast = policy(0);
  for (let i = 0; i < 4; i++) expect(fast.crashes.crashed(0).loop).toBe(false);
  expect(fast.crashes.crashed(0)).toMatchObject({ loop: true, crashes: 5 });
  fast.crashes.reset();
  expect(fast.crashes.crashed(0).loop).toBe(false);

  const slow = policy(0);
  for (let i = 0; i < 20; i++) {
    slow.clock.advance(seconds(15.1));
    expect(slow.crashes.crashed(0).loop).toBe(false);
  }
});

test('in a loop the pause grows from 30 s to 5 min, until the process has been ready for 30 s', () => {
  const { clock, crashes } = policy(1);
  const crash = (uptimeMs = 0) => {
    const verdict = crashes.crashed(uptimeMs);
    clock.advance(verdict.delayMs);
    return [verdict.loop, verdict.delayMs];
  };
  for (let i = 0; i < 4; i++) expect(crash()[0]).toBe(false);
  const pauses = [30, 60, 120, 240, 300, 300].map(seconds);
  // A crash after some readiness that is no stability counts as well.
  expect(pauses.map(() => crash(seconds(29)))).toEqual(pauses.map((pause) => [true, pause]));
  clock.advance(minutes(1));
  expect(crash(minutes(1))).toEqual([false, 250]);
  for (let i = 0; i < 3; i++) crash();
  expect(crash()).toEqual([true, seconds(30)]);
});

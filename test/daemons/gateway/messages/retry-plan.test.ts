import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  planAfter,
  type RetrySituation,
} from '../../../../src/daemons/gateway/domain/messages/dispatch/retry-plan.ts';
import { days, hours } from '../../../../src/kit/time/duration.ts';

const NOW = days(20_000);

function plan({
  status = 500,
  retryAfter = null,
  ...more
}: Partial<RetrySituation> & { status?: number | null; retryAfter?: string | null } = {}) {
  return planAfter({
    result: { responseStatus: status, retryAfter },
    ...{ tries: 1, schedule: [5, 300], failingSince: null, now: NOW, fraction: 0 },
    ...more,
  });
}
const waitOf = (given: Parameters<typeof plan>[0]): number => plan(given).nextAttemptAt! - NOW;

test('jitter adds up to a fifth to each delay', () => {
  expect([0, 0.5, 1].map((fraction) => waitOf({ fraction }))).toEqual([5000, 5500, 6000]);
  expect(waitOf({ tries: 2, fraction: 1 })).toBe(360_000);
});

test('Retry-After makes a delay longer, never shorter, and at most a day', () => {
  expect(waitOf({ retryAfter: '60' })).toBe(60_000);
  expect(waitOf({ retryAfter: '1' })).toBe(5000);
  expect(waitOf({ retryAfter: new Date(NOW + 60_000).toUTCString() })).toBe(60_000);
  expect(waitOf({ retryAfter: new Date(NOW - 60_000).toUTCString() })).toBe(5000);
  expect(waitOf({ retryAfter: '86401' })).toBe(hours(24));
  for (const retryAfter of ['-1', '1e9', '', 'soon', '9'.repeat(400)])
    expect(waitOf({ retryAfter })).toBeLessThanOrEqual(hours(24));
});

test('the last attempt of the schedule, a 410 and five days of failures end a message', () => {
  expect(plan({ tries: 3 })).toMatchObject({ status: 'dead', disable: null, failingSince: NOW });
  expect(plan({ status: 410 })).toMatchObject({ status: 'dead', disable: 'gone' });
  expect(plan({ failingSince: NOW - days(5) })).toMatchObject({ status: 'dead', disable: 'failures' });
  expect(plan({ failingSince: NOW - days(5) + 1 })).toMatchObject({ status: 'retrying', disable: null });
});

test('only 200 to 299 are successes', () => {
  fc.assert(
    fc.property(fc.option(fc.integer({ min: 100, max: 599 })), (status) => {
      const isSuccess = status !== null && status >= 200 && status <= 299;
      expect(plan({ status, failingSince: NOW - 1 })).toMatchObject(
        isSuccess ? { status: 'succeeded', failingSince: null } : { failingSince: NOW - 1 },
      );
    }),
  );
});

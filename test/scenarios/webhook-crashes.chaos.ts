import { expect, test } from 'vitest';
import { crashRun } from '../../bench/support/crash-run.ts';

/** The benchmark `webhook-crashes` in short. */
test('through two kill -9 of the gateway no accepted delivery is lost, and only interrupted ones run twice', async () => {
  const report = await crashRun({
    deliveries: 2700,
    duplicates: 1 / 9,
    connections: 50,
    kills: 2,
    settleMs: 60_000,
  });
  expect(report).toMatchObject({ acknowledged: 2700, kills: 2, lost: 0, unexplained: 0 });
  // The crashes did hit deliveries on their way, or this test shows nothing.
  expect(report.retried).toBeGreaterThan(0);
  expect(report.toldDuplicate).toBeGreaterThan(250);
}, 180_000);

import { expect, test } from 'vitest';
import { postCancelRun, startRun } from '../../../src/contracts/index.ts';
import { setUpBookings } from './support/bookings.ts';
import { startProcess } from './support/process.ts';

const POLL = { timeout: 20_000, interval: 20 };

test('a killed compensation resumes; the run is `cancelling` until it has ended', async () => {
  const { ledger, dataDir } = await setUpBookings();
  ledger.answer('release-1', (_, response, nth) => {
    if (nth > 1) response.end('{}');
  });
  let daemon = await startProcess(dataDir, {});
  const parts = ['0', '1', '2'].map((name, place) => ({ name, ms: place * 50 }));
  ledger.answer('charge', () => {});
  const body = { workflowId: 'saga', input: { parts, fails: false } };
  const { id } = (await daemon.call(startRun, { body })).run;
  const cancel = () => daemon.call(postCancelRun, { params: { runId: id } });
  await expect.poll(() => ledger.count('charge'), POLL).toBe(1);
  await cancel();
  ledger.cut();
  await expect.poll(() => ledger.count('release-1'), POLL).toBe(1);
  await daemon.kill();
  daemon = await startProcess(dataDir, {});
  expect((await daemon.run(id)).status).toBe('cancelling');
  await expect(cancel()).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
  await expect.poll(async () => (await daemon.run(id)).status, POLL).toBe('cancelled');
  expect((await daemon.run(id)).error).toBeNull();
  expect(['release-2', 'release-1', 'release-0'].map(ledger.count)).toEqual([1, 2, 1]);
}, 90_000);

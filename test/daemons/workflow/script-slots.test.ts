import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { cancelRun } from '../../../src/contracts/index.ts';
import { fileOf, startHolder, startScript } from './support/scripts.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const ONE_SLOT = { config: { execution: { worker: { maxProcesses: 1 } } } };
const POLL = { timeout: 10_000, interval: 20 };

/** Starts a script that has to wait for a slot. */
async function startWaiting(it: TestWorkflow): Promise<string> {
  const id = await startScript(it, [{ id: 'script', run: 'touch begun', timeout: '30s' }]);
  await expect.poll(async () => (await it.step(id, 'main.script')).status, POLL).toBe('running');
  return id;
}

test('at most execution.worker.maxProcesses scripts run at once, and waiting uses up no timeout', async () => {
  const it = await startWorkflow(ONE_SLOT);
  const { id, rounds, letGo } = await startHolder(it);
  const waiting = await startWaiting(it);
  it.clock.advance(60_000);
  const before = rounds();
  await expect.poll(rounds, POLL).toBeGreaterThan(before + 20);
  expect(await it.step(waiting, 'main.script')).toMatchObject({ status: 'running', startedAt: null });
  expect(existsSync(fileOf(it, waiting, 'begun'))).toBe(false);
  await letGo();
  await it.until(id, 'succeeded');
  await it.until(waiting, 'succeeded');
});

test('a cancel ends a script that waits for a slot, and leaves the slot to the next one', async () => {
  const it = await startWorkflow(ONE_SLOT);
  const { id, letGo } = await startHolder(it);
  const [cancelled, next] = [await startWaiting(it), await startWaiting(it)];
  await it.call(cancelRun, { params: { runId: cancelled } });
  await it.until(cancelled, 'cancelled');
  expect((await it.run(id)).status).toBe('running');
  expect(existsSync(fileOf(it, cancelled, ''))).toBe(false);
  await letGo();
  await it.until(next, 'succeeded');
});
